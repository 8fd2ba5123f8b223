//! The bottleneck of a cell and the CPU time of others, by CPU times.

use super::*;
use linerate_contract::Nanos;
use linerate_contract::Role::{Client, Relay, Server};

fn cpu(cpu: u32, roles: &[Role], busy: u64, interrupts: u64) -> CpuWindow {
    let nanos = |percent: u64| Nanos(percent * 10_000_000);
    let (busy, interrupts) = (nanos(busy), nanos(interrupts));
    CpuWindow { cpu, roles: roles.to_vec(), total: nanos(100), busy, interrupts, steal: Nanos::ZERO }
}

fn second(process_percent: &[(Role, u64)], cpus: Vec<CpuWindow>) -> Measurement {
    let cpu = process_percent.iter().map(|(role, percent)| (*role, Nanos(percent * 10_000_000))).collect();
    Measurement { elapsed: Nanos(1_000_000_000), cpu, cpus, ..Measurement::default() }
}

fn bottleneck(m: &Measurement, threads: u64, has_router: bool) -> Option<Bottleneck> {
    bound([m], Placement { threads, has_router, spinning: &[] })
}

#[test]
fn the_role_on_the_saturated_cpu_is_named() {
    let m = second(
        &[(Client, 40), (Relay, 80), (Server, 30)],
        vec![cpu(0, &[Client], 60, 15), cpu(1, &[Relay], 97, 15), cpu(2, &[Server], 50, 10)],
    );
    assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Relay)));
}

#[test]
fn of_roles_that_share_a_cpu_the_one_with_most_time_is_named() {
    let m = second(
        &[(Client, 40), (Relay, 30), (Server, 50)],
        vec![cpu(0, &[Client], 60, 15), cpu(1, &[Relay, Server], 99, 19)],
    );
    assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Server)));
}

#[test]
fn interrupts_without_a_relay_process_are_the_path() {
    let cpus = || vec![cpu(0, &[Client], 95, 60), cpu(1, &[Server], 50, 20)];
    let forwarded = second(&[(Client, 35), (Server, 30)], cpus());
    assert_eq!(bottleneck(&forwarded, 1, true), Some(Bottleneck::Path));
    assert_eq!(bottleneck(&forwarded, 1, false), Some(Bottleneck::Role(Client)), "there is no router");
    let proxied = second(&[(Client, 35), (Relay, 20), (Server, 30)], cpus());
    assert_eq!(bottleneck(&proxied, 1, true), Some(Bottleneck::Role(Client)));
}

#[test]
fn process_times_show_a_busy_role_where_ticks_miss_it() {
    let m = second(&[(Client, 40), (Server, 96)], vec![cpu(0, &[Client], 60, 5), cpu(1, &[Server], 80, 5)]);
    assert_eq!(bottleneck(&m, 1, false), Some(Bottleneck::Role(Server)));
}

#[test]
fn a_few_ticks_of_a_clock_that_counts_ticks_are_unknown() {
    let mut m = second(&[(Client, 10)], vec![cpu(0, &[Client], 12, 1)]);
    m.flags = vec![LabFlag::CpuFromProc];
    assert_eq!(bottleneck(&m, 1, false), Some(Bottleneck::Waiting));
    m.elapsed = Nanos(100_000_000);
    assert_eq!(bottleneck(&m, 1, false), Some(Bottleneck::Unknown));
}

#[test]
fn a_tie_names_the_client() {
    let m = second(&[(Client, 90), (Server, 93)], vec![cpu(0, &[Client], 94, 4), cpu(1, &[Server], 97, 4)]);
    assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Client)));
    let clear =
        second(&[(Client, 88), (Server, 99)], vec![cpu(0, &[Client], 91, 3), cpu(1, &[Server], 100, 1)]);
    assert_eq!(bottleneck(&clear, 1, true), Some(Bottleneck::Role(Server)));
}

#[test]
fn a_client_that_polls_until_an_operation_is_due_has_time_left() {
    let cpus = vec![cpu(0, &[Client], 100, 5), cpu(1, &[Server], 50, 10)];
    let m = second(&[(Client, 98), (Server, 45)], cpus);
    assert_eq!(bottleneck(&m, 1, false), Some(Bottleneck::Role(Client)));
    let polls = |percent: u64| Measurement { polling: Some(Nanos(percent * 10_000_000)), ..m.clone() };
    assert_eq!(bottleneck(&polls(60), 1, false), Some(Bottleneck::Waiting));
    assert_eq!(bottleneck(&polls(2), 1, false), Some(Bottleneck::Role(Client)));
}

#[test]
fn a_role_that_spins_is_named_as_such_and_only_where_no_other_is_busy() {
    let spinning = Placement { threads: 1, has_router: false, spinning: &[Client] };
    let busy = |server| {
        let cpus = vec![cpu(0, &[Client], 99, 1), cpu(1, &[Server], server, 1)];
        second(&[(Client, 99), (Server, server)], cpus)
    };
    assert_eq!(bound([&busy(40)], spinning), Some(Bottleneck::Spinning));
    assert_eq!(bound([&busy(95)], spinning), Some(Bottleneck::Role(Server)));
    assert_eq!(bottleneck(&busy(40), 1, false), Some(Bottleneck::Role(Client)));
}

#[test]
fn a_thread_that_migrates_over_four_cpus_is_found() {
    let migrating = |percent| {
        let four = (0..4).map(|i| cpu(i, &[Server], 25, 1)).collect();
        second(&[(Client, 10), (Server, percent)], four)
    };
    assert_eq!(bottleneck(&migrating(96), 1, true), Some(Bottleneck::Role(Server)));
    assert_eq!(bottleneck(&migrating(96), 4, true), Some(Bottleneck::Waiting));
}

#[test]
fn what_neither_side_of_a_duet_used_is_of_strangers() {
    let side = |server| {
        let cpus = vec![cpu(0, &[Client], 40, 10), cpu(1, &[Server], 100, 10)];
        second(&[(Client, 10), (Server, server)], cpus)
    };
    let share = |a: &Measurement, b: &Measurement| strangers([a, b]);
    let found = share(&side(25), &side(25)).unwrap();
    assert!((found - 0.25).abs() < 1e-9, "1.2 s busy without interrupts, 0.7 s of the sides: {found}");
    assert_eq!(share(&side(70), &side(70)), Some(0.0));
    let coarse = Measurement { flags: vec![LabFlag::CpuFromProc], ..side(25) };
    assert_eq!(share(&coarse, &side(25)), None);
    assert_eq!(share(&Measurement::default(), &Measurement::default()), None);
}

#[test]
fn what_others_were_seen_to_use_is_known_better_than_by_ticks() {
    let side = |others| {
        let cpus = vec![cpu(0, &[Client], 40, 10), cpu(1, &[Server], 100, 10)];
        Measurement { others, ..second(&[(Client, 10), (Server, 25)], cpus) }
    };
    assert_eq!(strangers([&side(Some(0.02)), &side(Some(0.04))]), Some(0.03));
    assert_eq!(disturbance([&side(Some(0.02))]), None);
    assert_eq!(disturbance([&side(Some(0.3)), &side(Some(0.1))]), Some(0.2));
    let by_ticks = strangers([&side(None), &side(Some(0.02))]).unwrap();
    assert!(by_ticks > 0.2, "{by_ticks}");
}

#[test]
fn steal_is_not_available_time() {
    let mut half = cpu(0, &[Server], 48, 1);
    half.steal = Nanos(500_000_000);
    assert_eq!(bottleneck(&second(&[(Server, 47)], vec![half]), 1, true), Some(Bottleneck::Role(Server)));
}

#[test]
fn idle_cpus_are_nothing_and_missing_times_are_none() {
    let idle = second(&[(Client, 10)], vec![cpu(0, &[Client], 12, 1)]);
    assert_eq!(bottleneck(&idle, 1, true), Some(Bottleneck::Waiting));
    assert_eq!(bottleneck(&Measurement::default(), 1, true), None);
    let busy_elsewhere = second(&[(Client, 10)], vec![cpu(0, &[Client], 12, 1), cpu(1, &[], 99, 1)]);
    assert_eq!(bottleneck(&busy_elsewhere, 1, true), Some(Bottleneck::Waiting));
}

#[test]
fn no_role_is_named_for_cpu_time_of_other_processes() {
    let crowded = || vec![cpu(0, &[Client], 100, 8), cpu(1, &[Relay, Server], 99, 7)];
    let mut m = second(&[(Client, 11), (Relay, 42), (Server, 6)], crowded());
    assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Unknown), "others had half of the relay's CPU");
    assert!(disturbance([&m]).is_some_and(|share| (share - 0.625).abs() < 1e-9), "{:?}", disturbance([&m]));
    m.cpu = BTreeMap::from([(Client, Nanos(110_000_000)), (Relay, Nanos(750_000_000))]);
    assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Relay)), "it had nearly all of its CPU");
    m.flags = vec![LabFlag::CpuFromProc];
    assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Client)), "the client's share is unknown");
    assert_eq!(disturbance([&m]), None);
}

#[test]
fn a_quiet_machine_is_not_disturbed() {
    let m = second(&[(Client, 40), (Server, 60)], vec![cpu(0, &[Client], 60, 15), cpu(1, &[Server], 80, 15)]);
    assert_eq!(disturbance([&m]), None);
    assert_eq!(disturbance([&Measurement::default()]), None);
}

#[test]
fn process_times_alone_are_sufficient() {
    assert_eq!(
        bottleneck(&second(&[(Client, 95), (Server, 30)], vec![]), 1, true),
        Some(Bottleneck::Role(Client))
    );
}
