//! Object ids, and digesting many objects fast.
