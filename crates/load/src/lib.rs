//! linerate-load
