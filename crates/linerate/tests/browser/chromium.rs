//! Chromium without a window, by the DevTools protocol over its pipe: messages are JSON, each ends with a
//! zero byte.

use crate::common::Folder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Debian's name first.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with one page.
pub(crate) struct Chromium {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    calls: u64,
    events: Vec<Value>,
    /// Profile, removed at the end.
    _profile: Folder,
}

impl Chromium {
    /// `None` if none is installed.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let program = NAMES.iter().find(|name| Command::new(name).arg("--version").output().is_ok())?;
        let profile = Folder::new(&format!("chromium-{name}"));
        // The pipe is descriptors 3 and 4. Root has no sandbox of Chromium's; the pages are our own.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", program])
            .args(["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-extensions", "--disable-background-networking"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb"])
            .arg(format!("--user-data-dir={}", profile.str()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (to, from) = (process.stdin.take()?, BufReader::new(process.stdout.take()?));
        let (session, events) = (None, Vec::new());
        let mut browser = Self { process, to, from, session, calls: 0, events, _profile: profile };
        // For the button that copies.
        browser.call("Browser.grantPermissions", json!({"permissions": ["clipboardReadWrite"]}));
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.call("Performance.enable", json!({"timeDomain": "threadTicks"}));
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
        Some(browser)
    }

    /// A page as a window of this width shows it.
    pub(crate) fn resize(&mut self, width: u32, is_dark: bool) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": "", "features": features}));
    }

    /// As a sheet of paper of this width shows it.
    pub(crate) fn resize_as_paper(&mut self, width: u32) {
        self.resize(width, true);
        let features = json!([{"name": "prefers-color-scheme", "value": "dark"}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": "print", "features": features}));
    }

    /// The page as PDF, in base64.
    pub(crate) fn pdf(&mut self) -> String {
        let answer = self.call("Page.printToPDF", json!({"preferCSSPageSize": false}));
        answer["data"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn scripts(&mut self, are_on: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({"value": !are_on}));
    }

    /// Loads a page, from nothing.
    pub(crate) fn open(&mut self, url: &str) {
        for address in ["about:blank", url] {
            self.events.clear();
            let answer = self.call("Page.navigate", json!({"url": address}));
            assert!(answer.get("errorText").is_none(), "{address}: {answer}");
            self.wait_for("Page.loadEventFired");
        }
    }

    /// The value of an expression; a promise is awaited.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// CPU time of the page's main thread: parsing, scripts, styles, layout, painting.
    pub(crate) fn cpu_seconds(&mut self) -> f64 {
        let metrics = self.call("Performance.getMetrics", json!({}));
        let is_it = |metric: &&Value| metric["name"] == "TaskDuration";
        let found = metrics["metrics"].as_array().and_then(|metrics| metrics.iter().find(is_it));
        found.and_then(|metric| metric["value"].as_f64()).expect("Chromium has this metric")
    }

    /// The whole page as PNG, in base64.
    pub(crate) fn screenshot(&mut self) -> String {
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].clone();
        // Larger pictures have no texture.
        let height = size["height"].as_f64().unwrap_or(900.0).min(16_000.0);
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1});
        let params = json!({"captureBeyondViewport": true, "clip": clip});
        let answer = self.call("Page.captureScreenshot", params);
        answer["data"].as_str().unwrap_or_default().to_owned()
    }

    /// Exceptions, errors of the console, and requests to anywhere but the page and its own data.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // An answer after all events of before.
        self.value("1");
        let complaint = |event: &Value| {
            let params = &event["params"];
            let is_bad = match event["method"].as_str()? {
                "Runtime.exceptionThrown" => true,
                "Runtime.consoleAPICalled" => params["type"] == "error",
                "Log.entryAdded" => params["entry"]["level"] == "error",
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str().unwrap_or_default();
                    !url.starts_with("data:") && params["type"] != "Document"
                }
                _ => false,
            };
            is_bad.then(|| event.to_string())
        };
        self.events.iter().filter_map(complaint).collect()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("Chromium reads");
        loop {
            let mut message = self.next();
            if message["id"] == self.calls {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn wait_for(&mut self, event: &str) {
        while !self.events.iter().any(|message| message["method"] == event) {
            let message = self.next();
            self.events.push(message);
        }
    }

    fn next(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("Chromium writes");
        bytes.pop();
        assert!(!bytes.is_empty(), "Chromium has ended");
        serde_json::from_slice(&bytes).expect("Chromium writes JSON")
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
