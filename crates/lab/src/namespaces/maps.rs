//! Programs that compile at run time, while they are sampled: they write down where their functions are, in
//! `/tmp/perf-PID.map`.

use crate::protocol::UserProcess;

/// The variable of Python from 3.12 on.
const OF_PYTHON: (&str, &str) = ("PYTHONPERFSUPPORT", "1");
/// The variable of Node.js; with these options interpreted functions have frames of their own.
const OF_NODE: (&str, &str) = ("NODE_OPTIONS", "--perf-basic-prof --interpreted-frames-native-stack");

/// The variable of the JVM: code with frame pointers, and the socket through which it is asked for its map.
const OF_JVM: (&str, &str) = ("JAVA_TOOL_OPTIONS", "-XX:+PreserveFramePointer -XX:+StartAttachListener");

/// The process with the variables that make it write its map; those of the user stay.
pub(super) fn with_maps(mut user: UserProcess) -> UserProcess {
    for (name, options) in [OF_NODE, OF_JVM] {
        let own = user.environment.get(name).cloned().or_else(|| std::env::var(name).ok());
        let all = format!("{} {options}", own.unwrap_or_default());
        user.environment.insert(name.to_owned(), all.trim().to_owned());
    }
    user.environment.entry(OF_PYTHON.0.to_owned()).or_insert_with(|| OF_PYTHON.1.to_owned());
    user
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::OwnFiles;
    use std::collections::BTreeMap;

    #[test]
    fn options_of_the_user_stay() {
        let own = BTreeMap::from([("NODE_OPTIONS".to_owned(), "--max-old-space-size=64".to_owned())]);
        let with = with_maps(UserProcess { files: OwnFiles::default(), environment: own });
        assert!(with.environment["NODE_OPTIONS"].starts_with("--max-old-space-size=64 --perf-basic-prof"));
        assert_eq!(with.environment["PYTHONPERFSUPPORT"], "1");
        assert!(with.environment["JAVA_TOOL_OPTIONS"].contains("PreserveFramePointer"));
    }
}
