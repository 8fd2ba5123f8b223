//! A batch script for sbatch(1): an array over the suites; in each element, a task on every node.

use super::FleetJobs;
use crate::lab::host;
use crate::lab::program::quoted;

/// The script. Its folders are `OUT/JOB-SUITE-NODE`, so that a second submission has others.
pub(crate) fn script(work: &FleetJobs, nodes: u32, out: &str, program: &str) -> String {
    let last = work.suites.len().saturating_sub(1);
    let all_nodes = nodes.saturating_mul(u32::try_from(work.machines.len().max(1)).unwrap_or(u32::MAX));
    // sbatch(1), "multiple counts": this number of nodes of each feature.
    let counts: Vec<String> = work.machines.iter().map(|machine| format!("{machine}*{nodes}")).collect();
    let constraint = match &counts[..] {
        [] => String::new(),
        counts => format!("#SBATCH --constraint=\"[{}]\"\n", counts.join("&")),
    };
    let suites: Vec<String> = work.suites.iter().map(|suite| quoted(suite)).collect();
    format!(
        "#!/bin/bash\n\
         # Made by `linerate fleet slurm`. Submit it by `sbatch FILE`; when all its jobs have ended, make\n\
         # one report by `linerate merge OUT/*`.\n\
         #SBATCH --job-name=linerate\n\
         #SBATCH --array=0-{last}\n\
         #SBATCH --nodes={all_nodes}\n\
         #SBATCH --ntasks-per-node=1\n\
         #SBATCH --exclusive\n\
         {constraint}\
         set -eu\n\
         suites=({})\n\
         export SUITE=\"${{suites[$SLURM_ARRAY_TASK_ID]}}\"\n\
         export OUT={}\n\
         export PROGRAM={}\n\
         \n\
         # linerate pins its processes itself. A node on which it fails does not end the others.\n\
         srun --cpu-bind=none --kill-on-bad-exit=0 sh -c '\n\
         \x20   export {}=\"$SLURMD_NODENAME\"\n\
         \x20   exec \"$PROGRAM\" run \"$SUITE\"{} --quiet \\\n\
         \x20       --out \"$OUT/$SLURM_ARRAY_JOB_ID-$SUITE-$SLURMD_NODENAME\"\n\
         '\n",
        suites.join(" "),
        quoted(out),
        quoted(program),
        host::NAME,
        work.options(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(machines: &[&str]) -> FleetJobs {
        let machines = machines.iter().map(|name| (*name).to_owned()).collect();
        FleetJobs { suites: vec!["proxy".into(), "transport".into()], quick: true, machines }
    }

    #[test]
    fn an_array_element_is_a_suite_on_all_its_nodes() {
        let script = script(&work(&[]), 3, "/shared/it's", "linerate");
        for line in [
            "#SBATCH --array=0-1\n",
            "#SBATCH --nodes=3\n",
            "suites=('proxy' 'transport')\n",
            "export OUT='/shared/it'\\''s'\n",
            " run \"$SUITE\" --quick --quiet",
        ] {
            assert!(script.contains(line), "{line}: {script}");
        }
        assert!(!script.contains("--constraint"));
    }

    #[test]
    fn each_type_of_machine_has_its_nodes() {
        let script = script(&work(&["epyc", "xeon"]), 2, "out", "linerate");
        assert!(script.contains("#SBATCH --nodes=4\n"), "{script}");
        assert!(script.contains("#SBATCH --constraint=\"[epyc*2&xeon*2]\"\n"), "{script}");
    }

    #[test]
    fn the_script_is_valid_for_a_shell() {
        let script = script(&work(&["epyc"]), 1, "a 'quoted' $folder", "linerate");
        let mut shell = std::process::Command::new("bash");
        let checked = shell.args(["-n", "-c", &script]).output().unwrap();
        assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
    }
}
