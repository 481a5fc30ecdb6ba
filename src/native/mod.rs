//! The native face.
