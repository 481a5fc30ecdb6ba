//! A session on the processor, and on a fake device that fails.
