//! Products in a page are computed in panels.

pub(super) use super::panels::add;
