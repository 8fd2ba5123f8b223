//! Empty: a package needs a target, and only the source of its dependency is wanted.
