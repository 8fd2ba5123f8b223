//! An indexed Job (`batch/v1`): an index is a suite. With types of machines, a Job for each of them, since
//! the pods of a Job have one node selector.

use super::FleetJobs;
use crate::lab::host;

/// The label that cloud providers set to the type of machine (Kubernetes, well-known labels).
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";

/// The manifest, a document for each Job. The folders are `/results/SUITE-POD`, so that a second Job has
/// others.
pub(crate) fn manifest(work: &FleetJobs, image: &str, claim: &str) -> String {
    let header = "# Made by `linerate fleet kubernetes`. Submit it by `kubectl apply -f FILE`; when the jobs \
                  are complete, copy\n# the volume and make one report by `linerate merge DIR/*`.\n";
    let machines: Vec<Option<&str>> = match &work.machines[..] {
        [] => vec![None],
        machines => machines.iter().map(|machine| Some(machine.as_str())).collect(),
    };
    let jobs: Vec<String> = machines.into_iter().map(|machine| job(work, machine, image, claim)).collect();
    format!("{header}{}", jobs.join("---\n"))
}

fn job(work: &FleetJobs, machine: Option<&str>, image: &str, claim: &str) -> String {
    let (name, suites, count) = (name(machine), work.suites.join(" "), work.suites.len());
    let (image, claim, options) = (scalar(image), scalar(claim), work.options());
    let selector = machine.map_or_else(String::new, |machine| {
        format!("      nodeSelector:\n        {INSTANCE_TYPE}: {}\n", scalar(machine))
    });
    let host = host::NAME;
    // Two pods on one node would measure each other.
    format!(
        r#"apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  labels:
    app: linerate
spec:
  completionMode: Indexed
  completions: {count}
  parallelism: {count}
  backoffLimit: 0
  template:
    metadata:
      labels:
        app: linerate
    spec:
      restartPolicy: Never
{selector}      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app: linerate
      containers:
        - name: linerate
          image: {image}
          command: ["/bin/sh", "-c"]
          args:
            - |
              set -eu
              set -- {suites}
              shift "$JOB_COMPLETION_INDEX"
              exec linerate run "$1"{options} --quiet --out "/results/$1-$POD"
          env:
            - name: {host}
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
            - name: POD
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
          securityContext:
            privileged: true # for namespaces of its own
          volumeMounts:
            - name: results
              mountPath: /results
      volumes:
        - name: results
          persistentVolumeClaim:
            claimName: {claim}
"#
    )
}

/// `linerate`, and the type of machine in lower case with hyphens: a name of an object is a DNS label.
fn name(machine: Option<&str>) -> String {
    /// The longest label, less an index and what Kubernetes adds to the names of pods.
    const LONGEST: usize = 50;
    let label = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = "linerate"
        .chars()
        .chain(machine.into_iter().flat_map(|m| ['-'].into_iter().chain(m.chars())))
        .map(label)
        .take(LONGEST)
        .collect();
    name.trim_end_matches('-').to_owned()
}

/// A JSON string is a scalar of YAML (1.2.2, section 1.3).
fn scalar(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_of_machine_is_a_job_and_each_suite_an_index() {
        let work = FleetJobs {
            suites: vec!["proxy".into(), "transport".into(), "websocket".into()],
            quick: true,
            machines: vec!["c6i.metal".into(), "Standard_D4".into()],
        };
        let manifest = manifest(&work, "registry.example/a: \"b\"", "claim");
        for part in [
            "name: linerate-c6i-metal\n",
            "name: linerate-standard-d4\n",
            "node.kubernetes.io/instance-type: \"Standard_D4\"\n",
            "completions: 3\n",
            "set -- proxy transport websocket\n",
            "linerate run \"$1\" --quick",
            r#"image: "registry.example/a: \"b\"""#,
        ] {
            assert!(manifest.contains(part), "{part}: {manifest}");
        }
        assert_eq!(manifest.matches("\n---\n").count(), 1);
    }

    #[test]
    fn a_long_type_of_machine_is_still_a_label() {
        let name = name(Some(&format!("{}.x", "a".repeat(40))));
        assert!(name.len() <= 50 && name.ends_with('a'), "{name}");
        assert_eq!(super::name(None), "linerate");
    }
}
