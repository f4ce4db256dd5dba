//! The data sets of each tenant: the same name can mean different data for two tenants.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{DataSet, DataSets};

/// Data sets by tenant.
#[derive(Clone, Default)]
pub struct TenantData {
    tenants: FxHashMap<Box<str>, Arc<DataSets>>,
    none: Arc<DataSets>,
}

impl TenantData {
    /// The data sets that queries of a tenant may name.
    pub fn of(&self, tenant: &str) -> &Arc<DataSets> {
        self.tenants.get(tenant).unwrap_or(&self.none)
    }

    /// All data sets; one of several tenants comes several times.
    pub fn all(&self) -> impl Iterator<Item = &DataSet> {
        self.tenants.values().flat_map(|sets| sets.iter())
    }

    /// The same with a data set of a tenant added, or replaced if its name is there.
    pub fn with(&self, tenant: &str, name: &str, set: Arc<DataSet>) -> TenantData {
        let sets = Arc::new(self.of(tenant).with(name, set));
        let mut tenants = self.tenants.clone();
        tenants.insert(tenant.into(), sets);
        TenantData { tenants, none: self.none.clone() }
    }

    /// The same, but equal data sets of a tenant are those of `before`, so that what was derived from them stays valid.
    pub fn sharing(mut self, before: &TenantData) -> TenantData {
        for (tenant, sets) in &mut self.tenants {
            let known = before.of(tenant);
            if known.is_same(sets) {
                *sets = known.clone();
            }
        }
        TenantData { none: before.none.clone(), ..self }
    }
}
