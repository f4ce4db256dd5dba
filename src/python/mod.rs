//! The Python face: the only folder that names PyO3. Batches cross it as Arrow, one crossing per
//! batch, with the interpreter released; ASTs do not cross it.

use pyo3::prelude::*;

#[pymodule]
mod _kernel {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
