//! How the server of a folder is built and started, as far as its files say: what `linerate init` writes.

use serde_json::Value;
use std::fs;
use std::path::Path;

/// A first `linerate.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guess {
    /// The file that says it.
    pub by: &'static str,
    pub build: Option<String>,
    pub start: String,
}

type Look = fn(&Path, &str) -> Option<(Option<String>, String)>;

/// The files that are looked at, in this order: a Makefile may only wrap the others.
const FILES: [(&str, Look); 6] = [
    ("Cargo.toml", cargo),
    ("go.mod", go),
    ("package.json", node),
    ("pyproject.toml", python),
    ("CMakeLists.txt", cmake),
    ("Makefile", make),
];

/// By the first of these files that is there; `None` without any.
pub fn look(folder: &Path) -> Option<Guess> {
    FILES.into_iter().find_map(|(by, look)| {
        let text = fs::read_to_string(folder.join(by)).ok()?;
        let (build, start) = look(folder, &text)?;
        Some(Guess { by, build, start })
    })
}

/// The names of the files, for an error.
pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.into_iter().map(|(name, _)| name)
}

impl Guess {
    /// The text of the file.
    pub fn text(&self) -> String {
        let line = |key: &str, value: &str| format!("{key} = {}\n", Value::from(value));
        let build = self.build.as_deref().map_or_else(String::new, |build| line("build", build));
        format!(
            "# What `linerate gate` compares here: where the branch began, and the files as they are.\n\
             # By {}; check the commands. {{port}} and {{address}} are replaced, and PORT is set.\n\
             {build}{}url = \"/\"\n\
             # connections = 16\n\
             # with = \"redis-server --port 6379\"    # what the server needs beside it\n\
             # margin = \"1%\"\n\n\
             # [compare.threads]                     # linerate compare threads\n\
             # start = [\"./server -t 1\", \"./server -t 4\"]\n",
            self.by,
            line("start", &self.start)
        )
    }
}

fn folder_name(folder: &Path) -> String {
    let name = folder.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    name.unwrap_or_else(|| "server".into())
}

fn cargo(folder: &Path, text: &str) -> Option<(Option<String>, String)> {
    let file: toml::Table = toml::from_str(text).ok()?;
    let package = file.get("package");
    let of_package = |key: &str| package?.get(key)?.as_str().map(str::to_owned);
    let bin = || file.get("bin")?.get(0)?.get("name")?.as_str().map(str::to_owned);
    let name = of_package("default-run").or_else(bin).or_else(|| of_package("name"));
    let name = name.unwrap_or_else(|| folder_name(folder));
    Some((Some("cargo build --release".into()), format!("./target/release/{name}")))
}

fn go(folder: &Path, text: &str) -> Option<(Option<String>, String)> {
    let module = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
    let name = module.trim().rsplit('/').next()?;
    let commands = || fs::read_dir(folder.join("cmd")).ok()?.flatten().map(|entry| entry.path()).min();
    let package = match folder.join("main.go").exists() {
        true => ".".to_owned(),
        false => commands().map_or(".".into(), |path| format!("./cmd/{}", folder_name(&path))),
    };
    Some((Some(format!("go build -o {name} {package}")), format!("./{name}")))
}

fn node(folder: &Path, text: &str) -> Option<(Option<String>, String)> {
    let file: Value = serde_json::from_str(text).ok()?;
    let script = |name: &str| file.get("scripts")?.get(name)?.as_str();
    let main = || Some(format!("node {}", file.get("main")?.as_str()?));
    let has_packages = folder.join("package-lock.json").exists();
    let mut build = Vec::new();
    build.extend(has_packages.then_some("npm ci"));
    build.extend(script("build").map(|_| "npm run build"));
    // npm itself would be one more process.
    let start = script("start").filter(|start| start.starts_with("node ")).map(str::to_owned);
    let start = start.or_else(|| script("start").map(|_| "npm start".into())).or_else(main);
    let build = (!build.is_empty()).then(|| build.join(" && "));
    Some((build, start.unwrap_or_else(|| "node index.js".into())))
}

fn python(folder: &Path, text: &str) -> Option<(Option<String>, String)> {
    let file: toml::Table = toml::from_str(text).ok()?;
    let script = || file.get("project")?.get("scripts")?.as_table()?.keys().next().cloned();
    if let Some(script) = script() {
        let build = "python3 -m venv .venv && .venv/bin/pip install --quiet .";
        return Some((Some(build.into()), format!("./.venv/bin/{script}")));
    }
    let programs = ["server.py", "app.py", "main.py"];
    let program = programs.into_iter().find(|name| folder.join(name).exists()).unwrap_or("server.py");
    Some((None, format!("python3 {program}")))
}

fn cmake(folder: &Path, text: &str) -> Option<(Option<String>, String)> {
    let word = |rest: &str| rest.split([' ', ')', '\n']).find(|word| !word.is_empty()).map(str::to_owned);
    let name = text.split_once("add_executable(").and_then(|(_, rest)| word(rest));
    let name = name.unwrap_or_else(|| folder_name(folder));
    let build = "cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --parallel 2";
    Some((Some(build.into()), format!("./build/{name}")))
}

fn make(folder: &Path, _: &str) -> Option<(Option<String>, String)> {
    Some((Some("make".into()), format!("./{}", folder_name(folder))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_at(file: &str, text: &str) -> (Option<String>, String) {
        let folder = std::env::temp_dir().join(format!("linerate-look-{}-{file}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), text).unwrap();
        let guess = look(&folder).unwrap();
        let keys: toml::Table = toml::from_str(&guess.text()).unwrap();
        assert_eq!(keys["start"].as_str(), Some(guess.start.as_str()));
        fs::remove_dir_all(&folder).unwrap();
        (guess.build, guess.start)
    }

    #[test]
    fn each_build_file_says_how_a_server_is_built_and_started() {
        for (file, text, build, start) in [
            ("Cargo.toml", "[package]\nname = 'shop'\n", "cargo build --release", "./target/release/shop"),
            ("go.mod", "module example.org/shop\n\ngo 1.24\n", "go build -o shop .", "./shop"),
            (
                "package.json",
                r#"{"scripts": {"start": "node shop.js", "build": "tsc"}}"#,
                "npm run build",
                "node shop.js",
            ),
            (
                "pyproject.toml",
                "[project.scripts]\nshop = 'shop:main'\n",
                "python3 -m venv .venv && .venv/bin/pip install --quiet .",
                "./.venv/bin/shop",
            ),
            (
                "CMakeLists.txt",
                "project(x)\nadd_executable(shop main.cpp)\n",
                "cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --parallel 2",
                "./build/shop",
            ),
        ] {
            assert_eq!(looked_at(file, text), (Some(build.to_owned()), start.to_owned()), "{file}");
        }
        let (build, start) = looked_at("Makefile", "all:\n");
        assert!(build.as_deref() == Some("make") && start.starts_with("./linerate-look-"), "{start}");
    }
}
