use super::*;
use linerate_contract::Nanos;
use linerate_model::{Spent, StackSample};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const OPERATIONS: u64 = 10_000;
/// Time that a sample stands for.
const PERIOD: u64 = 211_000;

/// A server by its stacks, each with the microseconds that it costs in an operation.
type Server<'a> = &'a [(&'a [&'a str], f64)];

/// Profiles of two servers as before there were windows without samples: the head is first.
fn profile(head: Server<'_>, base: Server<'_>, rounds: u32, random: &mut Pcg64) -> PairProfile {
    simulated([head, base], rounds, None, random)
}

/// Profiles of two servers, with the noise of samples, and of windows without them where samples slow a
/// server down by `inflation`.
fn simulated(sides: [Server<'_>; 2], rounds: u32, inflation: Option<f64>, random: &mut Pcg64) -> PairProfile {
    let mut pair = PairProfile::default();
    for round in 0..rounds {
        let mut window = |server: Server<'_>| {
            let mut sample = StackSample::default();
            // A virtual machine is slower for a while, for all functions alike.
            let mut slower = || 1.0 + 0.05 * random.random::<f64>();
            let (speed, beside) = (slower() * (1.0 + inflation.unwrap_or(0.0)), slower());
            // CPU times have an error at the ends of windows, of 3 ms on average.
            let spent = |by: f64, lost: f64| {
                let all = server.iter().map(|(_, us)| us * 1e3).sum::<f64>() * OPERATIONS as f64;
                Spent { operations: OPERATIONS, cpu: Nanos((all * by - lost * 6e6) as u64) }
            };
            let [lost, lost_beside] = [(); 2].map(|()| random.random::<f64>());
            let unsampled = inflation.map(|_| spent(beside, lost_beside));
            for (frames, us) in server {
                let expected = us * 1e3 * OPERATIONS as f64 * speed / PERIOD as f64;
                // Normal, by the sum of uniform ones, with the spread of a count.
                let normal = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                let count = (expected + normal * expected.sqrt()).round().max(0.0) as u64;
                let start = sample.names.len() as u32;
                sample.names.extend(frames.iter().map(|name| (*name).to_owned()));
                sample.stacks.push(linerate_model::SampledStack {
                    frames: (start..sample.names.len() as u32).collect(),
                    time: Nanos(count * PERIOD),
                });
            }
            (spent(speed, lost), sample, unsampled)
        };
        let sides = sides.map(&mut window);
        pair.add(round / 3, sides.each_ref().map(|(spent, sample, beside)| (*spent, sample, *beside)));
    }
    pair
}

const PLAIN: Server<'static> = &[
    (&["main", "serve", "parse"], 3.0),
    (&["main", "serve", "respond"], 2.0),
    (&["main", "serve", "write", "[k] do_syscall_64", "[k] __x64_sys_write", "[k] tcp_sendmsg"], 4.0),
    (
        &["main", "serve", "[k] do_syscall_64", "[k] __x64_sys_epoll_wait", "[k] finish_task_switch.isra.0"],
        2.0,
    ),
    (&["main", "collect", "mark"], 1.0),
    (&["main", "collect", "sweep"], 0.5),
];

fn with<'a>(further: &[(&'a [&'a str], f64)]) -> Vec<(&'a [&'a str], f64)> {
    PLAIN.iter().chain(further).copied().collect()
}

#[test]
fn what_the_kernel_needs_more_beside_a_named_function_is_told_after_it() {
    let mut random = Pcg64::seed_from_u64(4);
    let wakes = ["main", "serve", "[k] do_syscall_64", "[k] __x64_sys_epoll_wait", "[k] finish_task_switch"];
    let head = with(&[(&["main", "serve", "audit"], 3.0), (&wakes, 1.0)]);
    let found = explain(&profile(&head, PLAIN, 9, &mut random)).unwrap();
    let names: Vec<&str> = found.functions.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["audit", "switches of threads"]);
    assert!((0.9..1.1).contains(&found.explained.unwrap()), "{found:?}");
    // Alone it is no reason: equal servers are woken at other times, too.
    let found = explain(&profile(&with(&[(&wakes, 1.0)]), PLAIN, 9, &mut random)).unwrap();
    assert_eq!(found.functions, []);
}

#[test]
fn a_main_loop_that_is_mostly_system_calls_is_told_by_them() {
    let mut random = Pcg64::seed_from_u64(3);
    let send = ["main", "poll_loop", "forward", "[k] do_syscall_64", "[k] __sys_sendto", "[k] tcp_sendmsg"];
    let connect =
        ["main", "poll_loop", "connect_server", "[k] do_syscall_64", "[k] __sys_connect", "[k] tcp"];
    let head = with(&[(&send, 6.0), (&connect, 4.0), (&["main", "poll_loop", "parse_header"], 3.0)]);
    let found = explain(&profile(&head, PLAIN, 9, &mut random)).unwrap();
    let names: Vec<(&str, Option<&str>)> =
        found.functions.iter().map(|one| (one.name.as_str(), one.caller.as_deref())).collect();
    let expected = [
        ("sendto(2)", Some("forward")),
        ("connect(2)", Some("connect_server")),
        ("parse_header", Some("poll_loop")),
    ];
    assert_eq!(names, expected, "{found:?}");
}

#[test]
fn a_cheap_function_of_both_that_calls_a_planted_one_is_not_the_cause() {
    let mut random = Pcg64::seed_from_u64(3);
    let head = with(&[
        (&["main", "serve", "handle"], 0.1),
        (&["main", "serve", "handle", "audit", "clock"], 2.9),
        (&["main", "serve", "handle", "audit"], 0.1),
    ]);
    let base = with(&[(&["main", "serve", "handle"], 0.1)]);
    let found = explain(&profile(&head, &base, 12, &mut random)).unwrap();
    assert_eq!(found.functions[0].name, "audit", "{found:?}");
}

#[test]
fn a_planted_function_is_the_first_with_its_callees_and_its_interval_has_the_cost() {
    let planted =
        with(&[(&["main", "serve", "audit"], 0.4), (&["main", "serve", "audit", "clock_gettime"], 2.6)]);
    let found: Vec<Explanation> = (0..20)
        .map(|seed| explain(&profile(&planted, PLAIN, 9, &mut Pcg64::seed_from_u64(seed))).unwrap())
        .collect();
    assert!(found.iter().all(|found| found.functions[0].name == "audit"), "{found:?}");
    assert!(found.iter().all(|found| (0.8..1.2).contains(&found.explained.unwrap())));
    let covers = |found: &&Explanation| {
        let [low, high] = found.functions[0].cost.ci95;
        (low..high).contains(&3.0)
    };
    // The speed of the simulated machine is up to 5 % lower, 2.5 % on average.
    assert!(found.iter().filter(covers).count() >= 12, "{found:?}");
    let first = &found[0].functions[0];
    assert!(first.cost.us[0] == 0.0 && first.self_us[1] < 1.0 && first.total_us[1] > 2.5, "{first:?}");
}

#[test]
fn samples_that_slow_a_server_down_by_15_percent_do_not_make_a_planted_function_dearer() {
    let planted = with(&[(&["main", "serve", "audit"], 3.0)]);
    let found = |seed| {
        let mut random = Pcg64::seed_from_u64(seed);
        explain(&simulated([&planted, PLAIN], 9, Some(0.15), &mut random)).unwrap()
    };
    let all: Vec<Explanation> = (0..200).map(found).collect();
    assert!(all.iter().all(|found| found.functions[0].name == "audit"));
    // The speed of the simulated machine is up to 5 % lower, 2.5 % on average.
    let (middle, whole) = (3.0 * 1.025, 12.5 * 1.025);
    let covers = |found: &&Explanation| {
        let [low, high] = found.functions[0].cost.ci95;
        (low..high).contains(&middle)
    };
    assert!(all.iter().filter(covers).count() >= 180, "about 95 % are expected");
    let means = [
        mean(all.iter().map(|found| found.functions[0].cost.difference_us)) / middle,
        mean(all.iter().map(|found| found.cpu.us[0])) / whole,
        mean(all.iter().map(|found| found.explained.unwrap())),
    ];
    assert!(means.iter().all(|mean| (mean - 1.0).abs() < 0.01), "{means:?}");
    let equal = (0..200).filter(|seed| {
        let mut random = Pcg64::seed_from_u64(*seed);
        !explain(&simulated([PLAIN; 2], 9, Some(0.15), &mut random)).unwrap().functions.is_empty()
    });
    assert!(equal.count() <= 4, "one in a hundred at most is expected");
}

#[test]
fn a_function_that_is_most_of_its_side_is_named_if_it_is_the_difference() {
    let planted = with(&[(&["main", "serve", "audit", "clock"], 30.0)]);
    let found = explain(&profile(&planted, PLAIN, 9, &mut Pcg64::seed_from_u64(7))).unwrap();
    assert_eq!(found.functions[0].name, "audit", "{found:?}");
}

#[test]
fn code_without_symbols_is_told_by_the_call_of_the_kernel_or_its_library() {
    let head = with(&[
        (&["main", "nginx+0x77000", "[k] do_syscall_64", "[k] ksys_write", "[k] ext4"], 2.0),
        (&["main", "nginx+0x77000", "libz.so.1+0x5000"], 3.0),
        (&["main", "nginx+0x77000", "libz.so.1+0x6000"], 3.0),
    ]);
    let found = explain(&profile(&head, PLAIN, 12, &mut Pcg64::seed_from_u64(8))).unwrap();
    let names: Vec<&str> = found.functions.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["libz.so.1", "write(2)"]);
}

#[test]
fn code_of_no_file_is_part_of_what_calls_it() {
    let head = with(&[(&["main", "handler", "[unknown]"], 2.0), (&["main", "handler"], 1.0)]);
    let base = with(&[(&["main", "handler"], 1.0), (&["[unknown]"], 0.5)]);
    let found = explain(&profile(&head, &base, 12, &mut Pcg64::seed_from_u64(8))).unwrap();
    let names: Vec<&str> = found.functions.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["handler", "[unknown]"]);
    assert!((1.8..2.2).contains(&found.functions[0].cost.difference_us), "{found:?}");
}

#[test]
fn a_function_that_grew_has_its_caller() {
    let parts: Server<'_> = &[(&["main", "serve", "audit", "clock"], 3.0)];
    let (head, base) = (with(&[parts[0], parts[0]]), with(parts));
    let found = explain(&profile(&head, &base, 9, &mut Pcg64::seed_from_u64(9))).unwrap();
    let first = &found.functions[0];
    assert_eq!((&*first.name, first.caller.as_deref()), ("clock", Some("audit")));
}

#[test]
fn a_function_that_is_gone_and_one_that_costs_more_are_found_with_their_signs() {
    let more = with(&[(&["main", "serve", "parse"], 1.0)]);
    let base = with(&[(&["main", "serve", "old"], 1.5)]);
    let found = explain(&profile(&more, &base, 9, &mut Pcg64::seed_from_u64(1))).unwrap();
    let signs: Vec<(&str, bool)> =
        found.functions.iter().map(|one| (&*one.name, one.cost.difference_us > 0.0)).collect();
    assert_eq!(signs, [("old", false), ("parse", true)]);
}

#[test]
fn one_more_system_call_is_told_by_its_name() {
    let twice = with(&[PLAIN[2]]);
    let found = explain(&profile(&twice, PLAIN, 9, &mut Pcg64::seed_from_u64(2))).unwrap();
    assert_eq!(found.functions[0].name, "write(2)");
    assert!((found.functions[0].cost.us[1] / found.functions[0].cost.us[0] - 2.0).abs() < 0.2);
}

#[test]
fn equal_servers_name_nothing() {
    let named = (0..200).filter(|seed| {
        let found = explain(&profile(PLAIN, PLAIN, 9, &mut Pcg64::seed_from_u64(*seed))).unwrap();
        !found.functions.is_empty()
    });
    assert!(named.count() <= 4, "one in a hundred at most is expected");
}

#[test]
fn a_call_that_waits_is_named_from_a_factor_of_two_on() {
    let waits =
        |us: f64| with(&[(&["main", "[k] do_syscall_64", "[k] __x64_sys_epoll_wait", "[k] ep_poll"], us)]);
    let named = |us: f64| {
        let pair = profile(&waits(us), &waits(2.0), 9, &mut Pcg64::seed_from_u64(5));
        let functions = explain(&pair).unwrap().functions;
        functions.first().map(|first| first.name.clone())
    };
    assert_eq!([3.0, 8.0].map(named), [None, Some("epoll_wait(2)".to_owned())]);
}

#[test]
fn a_difference_of_one_launch_alone_names_nothing() {
    let planted = with(&[(&["main", "serve", "parse"], 3.0)]);
    let mut random = Pcg64::seed_from_u64(3);
    let (mut pair, other) =
        (profile(&planted, PLAIN, 3, &mut random), profile(PLAIN, &planted, 3, &mut random));
    for mut round in other.rounds {
        round.iter_mut().for_each(|side| side.launch = 1);
        pair.rounds.push(round);
    }
    assert!(explain(&pair).unwrap().functions.is_empty());
}

#[test]
fn few_windows_and_windows_without_samples_explain_nothing() {
    let mut random = Pcg64::seed_from_u64(4);
    assert_eq!(explain(&profile(PLAIN, PLAIN, 2, &mut random)), None);
    assert_eq!(explain(&PairProfile::default()), None);
}

#[test]
fn what_a_script_calls_is_part_of_its_function_into_which_a_compiler_has_put_others() {
    const HANDLER: &str = "serve /srv/a.js:8:19";
    let mut random = Pcg64::seed_from_u64(3);
    let head = with(&[(&["main", HANDLER], 2.0), (&["main", HANDLER, "[unknown]", "now"], 2.0)]);
    let base = with(&[(&["main", HANDLER], 1.0)]);
    let found = explain(&profile(&head, &base, 12, &mut random)).unwrap();
    let [one] = &found.functions[..] else { panic!("{found:?}") };
    assert_eq!((&*one.name, one.callee.as_deref()), (HANDLER, Some("now")));
    assert!((one.cost.ci95[0]..one.cost.ci95[1]).contains(&3.0), "{one:?}");
    // A function of the script itself has its own cost.
    let head = with(&[(&["main", HANDLER, "audit /srv/a.js:1:1", "now"], 3.0), (&["main", HANDLER], 1.0)]);
    let found = explain(&profile(&head, &base, 12, &mut random)).unwrap();
    assert_eq!((&*found.functions[0].name, &found.functions[0].callee), ("audit /srv/a.js:1:1", &None));
}

#[test]
fn the_first_windows_of_a_launch_count_only_where_they_cost_as_much_as_its_others() {
    let mut random = Pcg64::seed_from_u64(3);
    let planted = with(&[(&["main", "serve", "audit"], 3.0)]);
    let young = with(&[(&["main", "serve", "audit"], 1.0), (&["compile"], 15.0)]);
    let mut pair = profile(&young, &young, 1, &mut random);
    for round in profile(&planted, PLAIN, 6, &mut random).rounds {
        pair.rounds.push(round.map(|side| ProfileWindow { launch: 0, ..side }));
    }
    let found = explain(&pair).unwrap();
    assert_eq!((found.rounds, &*found.functions[0].name), (6, "audit"), "{found:?}");
    assert!((0.9..1.1).contains(&found.explained.unwrap()), "{found:?}");
    pair.rounds.truncate(6);
    assert_eq!(explain(&pair).unwrap().rounds, 6, "few are all kept");
}

#[test]
fn a_handler_that_costs_the_other_side_little_is_not_named_for_what_it_calls() {
    let mut random = Pcg64::seed_from_u64(3);
    let base = with(&[(&["main", "handle"], 0.05)]);
    let head = with(&[(&["main", "handle"], 0.05), (&["main", "handle", "audit", "now"], 15.0)]);
    let found = explain(&profile(&head, &base, 9, &mut random)).unwrap();
    assert_eq!(found.functions[0].name, "audit", "{found:?}");
}
