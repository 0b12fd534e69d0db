//! Each invariant, on a history that breaks it and on one that comes close.

use super::*;

const RULES: Rules = Rules { lease: ms(100), served_within: ms(500) };

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn event(at: u64, client: u64, attempt: u64, what: What) -> Event {
    let name = if attempt == 0 { String::new() } else { "x".to_owned() };
    Event { at: ms(at), client, attempt, name, what }
}

fn granted(token: u64, until: u64) -> What {
    What::Granted { token, until: ms(until), ends: None }
}

fn clauses(events: Vec<Event>) -> Vec<&'static str> {
    check(&History::of(events), RULES).into_iter().map(|violation| violation.clause).collect()
}

/// One client holds from 10 to 60, then another from 70 to 90; nothing is wrong.
fn good() -> Vec<Event> {
    vec![
        event(0, 1, 1, What::Asked),
        event(10, 1, 1, granted(5, 110)),
        event(20, 2, 1, What::Asked),
        event(30, 1, 1, What::Held { until: ms(130) }),
        event(60, 1, 1, What::Releasing),
        event(65, 1, 1, What::Released),
        event(70, 2, 1, granted(6, 170)),
        event(90, 2, 1, What::Releasing),
        event(95, 2, 1, What::Released),
        event(96, 0, 0, What::Left { claims: 0 }),
    ]
}

fn replaced(at: u64, what: What) -> Vec<Event> {
    let mut events = good();
    let event = events.iter_mut().find(|event| event.at == ms(at)).expect("an event at that moment");
    event.what = what;
    events
}

#[test]
fn a_good_history_breaks_nothing() {
    assert_eq!(clauses(good()), [""; 0]);
}

#[test]
fn two_holds_at_once_are_found() {
    let mut events = good();
    events.iter_mut().find(|event| event.at == ms(70)).expect("the second grant").at = ms(50);
    assert!(clauses(events).contains(&"L1.a"));
}

#[test]
fn a_hold_that_was_covered_by_a_longer_one_hides_no_overlap() {
    let events = vec![
        event(0, 1, 1, What::Asked),
        event(1, 1, 1, granted(1, 300)),
        event(2, 2, 1, What::Asked),
        event(3, 2, 1, granted(2, 10)),
        event(20, 3, 1, What::Asked),
        event(21, 3, 1, granted(3, 30)),
    ];
    assert_eq!(clauses(events), ["L1.a", "L1.a"]);
}

#[test]
fn a_hold_that_ended_by_death_or_deadline_does_not_overlap() {
    let mut events = good();
    events.retain(|event| event.at != ms(60) && event.at != ms(65));
    assert_eq!(clauses(events.clone()), ["L1.a"], "until 130 nobody else may hold");
    events.push(event(60, 1, 0, What::Died));
    assert_eq!(clauses(events), [""; 0]);
}

#[test]
fn a_hold_past_its_fixed_end_is_found() {
    let granted = What::Granted { token: 5, until: ms(25), ends: Some(ms(29)) };
    assert_eq!(clauses(replaced(10, granted)), ["L3.b"]);
}

#[test]
fn a_lost_hold_that_comes_back_is_found() {
    let mut events = good();
    events.push(event(25, 1, 1, What::Lost));
    assert_eq!(clauses(events), ["L4.b"]);
}

#[test]
fn tokens_out_of_order_or_given_twice_are_found() {
    assert_eq!(clauses(replaced(70, granted(5, 170))), ["L13.a"]);
    // Asked for while the first was under way, it may have been granted before it, and lost since.
    let mut events = replaced(70, granted(4, 170));
    events.iter_mut().find(|event| event.at == ms(95)).expect("the last release").what = What::NotHeld;
    let asks = |at| {
        move |event: &mut Event| {
            if event.client == 2 && event.what == What::Asked {
                event.at = ms(at);
            }
        }
    };
    events.iter_mut().for_each(asks(5));
    assert_eq!(clauses(events.clone()), [""; 0]);
    events.iter_mut().for_each(asks(66));
    assert_eq!(clauses(events), ["L13.a"]);
}

#[test]
fn a_release_of_what_another_held_is_found() {
    let events = vec![
        event(0, 1, 1, What::Asked),
        event(1, 1, 1, granted(1, 20)),
        event(30, 2, 1, What::Asked),
        event(31, 2, 1, granted(2, 130)),
        event(40, 1, 1, What::Releasing),
        event(41, 1, 1, What::Released),
    ];
    assert_eq!(clauses(events), ["L5.a"]);
}

#[test]
fn a_hold_that_survives_a_long_stop_is_found() {
    let stop = |stopped, resumed| {
        vec![
            event(0, 1, 1, What::Asked),
            event(1, 1, 1, granted(1, 90)),
            event(stopped, 1, 0, What::Stopped),
            event(resumed, 1, 0, What::Resumed),
            event(resumed + 1, 1, 1, What::Held { until: ms(resumed + 2) }),
        ]
    };
    assert_eq!(clauses(stop(10, 120)), ["L8.a"]);
    assert_eq!(clauses(stop(10, 80)), [""; 0], "a stop shorter than the lease may be survived");
}

#[test]
fn what_is_left_at_the_end_is_found() {
    assert_eq!(clauses(replaced(96, What::Left { claims: 1 })), ["L10.d"]);
}

#[test]
fn a_waiter_that_is_not_served_after_healing_is_found() {
    let mut events = good();
    events.push(event(97, 0, 0, What::Healed));
    events.push(event(98, 3, 1, What::Asked));
    assert_eq!(clauses(events.clone()), [""; 0]);
    events.push(event(700, 0, 0, What::Left { claims: 0 }));
    assert_eq!(clauses(events.clone()), ["L9.g"]);
    events.push(event(590, 3, 1, What::GaveUp));
    assert_eq!(clauses(events), [""; 0], "an answer without a guard is an answer");
}
