//! Query text in, canonical query out.

pub mod ast;
