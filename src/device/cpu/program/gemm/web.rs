//! In a page: panels.

pub(super) use super::panels::add;
