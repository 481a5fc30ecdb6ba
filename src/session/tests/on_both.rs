//! A GPU and the CPU beside it: which device answers what, and what becomes of calls when
//! the GPU is lost.

use super::*;
use crate::batch::Request;
use crate::plan::KINDS;
use crate::tensor::Packing;

/// A model of milliseconds: the GPU's flush, and a float on the CPU.
fn model(flush: f64, float: f64) -> Model {
    let mut model = Model([0.0; FACTS.len()]);
    model.0[0] = flush;
    model.0[FACTS.len() - KINDS + 1] = float * 1e6;
    model
}

fn gpu() -> Frail {
    Frail::new(1 << 20).gpu()
}

fn routed(flush: f64, float: f64) -> Session<Frail> {
    let session = Session::new(gpu(), config()).expect("valid settings");
    session.with_companion(Frail::new(1 << 20), Some(model(flush, float).into()))
}

/// A session whose calls only leave the GPU if they ask for the CPU.
fn asked() -> Session<Frail> {
    let session = Session::new(gpu(), config()).expect("valid settings");
    session.with_companion(Frail::new(1 << 20), None)
}

fn put_on(session: &mut Session<Frail>, engine: Engine, value: f32) -> Ticket {
    let accepted = ask_of(session, (value, 3), None, Some(engine));
    accepted.expect("taken").ticket
}

/// How many calls ran on the GPU, and on the CPU.
fn ran_on(session: &Session<Frail>) -> (u64, u64) {
    let stats = session.stats();
    (stats.ran_on_gpu, stats.ran_on_cpu)
}

/// Launches of both devices.
fn launches(session: &Session<Frail>) -> (usize, usize) {
    let beside = session.devices.companion().expect("there is one");
    (session.devices.primary().launches, beside.launches)
}

#[test]
fn calls_of_one_batch_run_where_they_ask_to() {
    let mut session = asked();
    let engines = [Engine::Gpu, Engine::Cpu, Engine::Cpu, Engine::Gpu];
    let tickets: Vec<Ticket> = (0_u16..)
        .zip(engines)
        .map(|(value, engine)| put_on(&mut session, engine, value.into()))
        .collect();
    let plain = put(&mut session, 9.0, 3);
    let sent = launch(&mut session);
    let settled = land_all(&mut session, sent);
    let [cpu, gpu] = &settled[..] else {
        panic!("a part for each device, not {}", settled.len());
    };
    let value = |call: usize| vec![call as f32 + 1.0; 3];
    assert_eq!(
        values(cpu),
        [(tickets[1], value(1)), (tickets[2], value(2))]
    );
    let rest = [
        (tickets[0], value(0)),
        (tickets[3], value(3)),
        (plain, value(9)),
    ];
    assert_eq!(values(gpu), rest);
    assert!(!cpu.is_last && gpu.is_last);
    assert_eq!((launches(&session), ran_on(&session)), ((1, 1), (3, 2)));
    assert_eq!((session.pending(), session.in_flight()), (0, 0));
}

#[test]
fn what_the_cpu_answers_sooner_never_sees_the_gpu() {
    let mut session = routed(10.0, 0.1);
    for _ in 0..3 {
        put(&mut session, 1.0, 4);
        let sent = launch(&mut session);
        assert!(sent.has_cpu_share && sent.flights.is_empty());
        assert!(land(&mut session, sent).is_last);
    }
    assert_eq!((launches(&session), ran_on(&session)), ((0, 3), (0, 3)));
    // Four hundred times as many rows are worth a flush of the GPU.
    put(&mut session, 1.0, 1600);
    let sent = launch(&mut session);
    land(&mut session, sent);
    assert_eq!((launches(&session), ran_on(&session)), ((1, 3), (1, 3)));
}

#[test]
fn operands_of_more_bytes_than_32_bits_count_go_to_the_gpu() {
    for words in [(1 << 30) - 4, 1 << 30, u32::MAX - 3] {
        let mut session = routed(10.0, 0.1);
        let ticket = put(&mut session, 1.0, 4);
        let mut work = open(&session).calls()[0].work;
        let mut batch = Batch::new(open(&session).id, Payload::new(Arena::default()), 1);
        // The plan is counted alone: nobody reads the operands.
        work.planned.rows = words / 2;
        work.planned.inputs = Span { at: 0, words };
        batch.push(ticket, Request::default(), work);
        let [group] = session.routed(&batch).groups[..] else {
            panic!("one call is one group");
        };
        assert_eq!(group.sum.up, 4.0 * f64::from(words));
        assert_eq!(group.fixed, Some(Engine::Gpu), "{words} words");
    }
}

#[test]
fn the_gpu_is_not_blamed_for_the_cpu_or_for_failures() {
    for has_cpu_share in [true, false] {
        let mut session = routed(0.5, 0.1);
        for _ in 0..20 {
            put(&mut session, 1.0, 16);
            if has_cpu_share {
                put_on(&mut session, Engine::Cpu, 2.0);
            }
            let sent = launch(&mut session);
            let (batch, generation) = (sent.batch, sent.generation);
            assert_eq!((sent.has_cpu_share, sent.flights.len()), (has_cpu_share, 1));
            for flight in flights(&mut session, sent) {
                let outcome = match has_cpu_share {
                    true => pollster::block_on(flight),
                    false => Err(Error::Fatal("planned".into())),
                };
                // The CPU kept the thread until now.
                session.note_landing(LaunchId { batch, generation }, &outcome, Millis(50.0));
                session
                    .settle(batch, generation, outcome)
                    .expect("on its way");
            }
        }
        put(&mut session, 1.0, 16);
        let sent = launch(&mut session);
        assert!(!sent.has_cpu_share, "the model has the GPU sooner");
        land(&mut session, sent);
    }
}

#[test]
fn a_call_may_ask_only_for_a_device_that_there_is() {
    let mut cpu = session(1 << 20);
    let refused = ask_of(&mut cpu, (1.0, 3), None, Some(Engine::Gpu));
    let Err(Error::NoAdapter(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("leave engine out"), "{why}");
    assert_eq!(
        Error::NoAdapter(why.clone()).to_string(),
        why,
        "no other advice"
    );
    put_on(&mut cpu, Engine::Cpu, 1.0);
    let mut lone = Session::new(gpu(), config()).expect("valid settings");
    let refused = ask_of(&mut lone, (1.0, 3), None, Some(Engine::Cpu));
    assert!(
        matches!(refused, Err(Error::InvalidInput(_))),
        "{refused:?}"
    );
}

#[test]
fn a_part_that_fails_does_so_alone() {
    for fails in [Engine::Gpu, Engine::Cpu] {
        let mut session = asked();
        let fault = Some(Error::Fatal("planned".into()));
        match fails {
            Engine::Gpu => session.devices.primary_mut().fault = fault,
            Engine::Cpu => session.devices.companion_mut().expect("there is one").fault = fault,
        }
        put_on(&mut session, Engine::Gpu, 1.0);
        put_on(&mut session, Engine::Cpu, 1.0);
        let sent = launch(&mut session);
        let settled = land_all(&mut session, sent);
        let is_well: Vec<bool> = settled.iter().map(|part| part.outcome.is_ok()).collect();
        assert_eq!(is_well, [fails == Engine::Gpu, fails == Engine::Cpu]);
        assert_eq!((session.pending(), session.stats().rejected), (0, 1));
    }
}

#[test]
fn calls_on_the_cpu_go_on_while_the_gpu_is_lost() {
    let mut session = asked();
    put_on(&mut session, Engine::Gpu, 1.0);
    let lost = launch(&mut session);
    session.lose(lost.generation);
    // More batches than may be in flight.
    let waiting = session.queue.config().max_in_flight + 2;
    for _ in 0..waiting {
        put_on(&mut session, Engine::Gpu, 2.0);
        let own = put_on(&mut session, Engine::Cpu, 3.0);
        let sent = launch(&mut session);
        assert!(sent.has_cpu_share && sent.flights.is_empty());
        let settled = land(&mut session, sent);
        assert_eq!(values(&settled), [(own, vec![4.0; 3])]);
    }
    assert_eq!(session.pending(), 1 + waiting);
    session.replace_device(gpu(), NOW);
    let mut answered = 0;
    while let Some(sent) = session.launch(NOW) {
        for settled in land_all(&mut session, sent) {
            answered += values(&settled).len();
        }
    }
    assert_eq!(answered, 1 + waiting);
    assert_eq!(ran_on(&session), (answered as u64, waiting as u64));
    assert_eq!(session.pending(), 0);
}

#[test]
fn the_cpu_takes_over_what_was_on_a_lost_gpu() {
    // Too much for the CPU by the model, and not too much to bridge.
    let mut session = routed(0.5, 0.1);
    let call = put(&mut session, 1.0, 16);
    let sent = launch(&mut session);
    assert!(!sent.has_cpu_share);
    let loss = Err(Error::DeviceLost("planned".into()));
    assert!(session.settle(sent.batch, sent.generation, loss).is_none());
    assert!(session.is_lost());
    let again = session.launch(NOW).expect("sent at once");
    // Nothing that the lost device still answers counts.
    let late = session.settle(
        sent.batch,
        sent.generation,
        Ok(Readback::Host(vec![9; 16].into())),
    );
    assert!(late.is_none());
    let settled = land(&mut session, again);
    assert_eq!(values(&settled), [(call, vec![2.0; 16])]);
    // A call that would keep the CPU for long waits for the next device.
    put(&mut session, 1.0, 1000);
    session.flush();
    assert!(session.launch(NOW).is_none());
    session.replace_device(gpu(), NOW);
    let sent = session.launch(NOW).expect("sent again");
    assert!(land(&mut session, sent).is_last);
    assert_eq!(ran_on(&session), (1, 1));
}

#[test]
fn the_cpu_answers_while_a_kernel_compiles() {
    let slow = Session::new(gpu().compiling(), config()).expect("valid settings");
    let routing = Some(model(0.5, 0.1).into());
    let mut session = slow.with_companion(Frail::new(1 << 20), routing);
    put(&mut session, 1.0, 16);
    let sent = launch(&mut session);
    assert!(sent.has_cpu_share && sent.flights.is_empty());
    land(&mut session, sent);
    // A call that would keep the CPU for long waits for the compiler.
    let long = put(&mut session, 2.0, 1000);
    session.flush();
    assert!(session.launch(NOW).is_none());
    let mut works = session.compiles();
    assert_eq!(works.len(), 1, "begun by the first call, once");
    let compiled = pollster::block_on(works.remove(0));
    session.compiled(session.generation(), compiled, NOW);
    let sent = session.launch(NOW).expect("it can go");
    let settled = land(&mut session, sent);
    assert_eq!(values(&settled), [(long, vec![3.0; 1000])]);
    put(&mut session, 1.0, 16);
    let sent = launch(&mut session);
    assert!(
        !sent.has_cpu_share,
        "no route was kept for want of a kernel"
    );
    land(&mut session, sent);
    assert_eq!(ran_on(&session), (2, 1));
}

#[test]
fn the_cpu_that_takes_over_for_good_answers_everybody() {
    let mut session = asked();
    put_on(&mut session, Engine::Gpu, 1.0);
    put_on(&mut session, Engine::Cpu, 1.0);
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20), NOW);
    put_on(&mut session, Engine::Cpu, 1.0);
    let sent = launch(&mut session);
    assert_eq!(values(&land(&mut session, sent)).len(), 3);
    assert_eq!(ran_on(&session), (0, 3));
}

#[test]
fn a_plan_names_its_devices() {
    let mut session = asked();
    session.begin_explain();
    put_on(&mut session, Engine::Gpu, 1.0);
    put_on(&mut session, Engine::Cpu, 1.0);
    let text = session.end_explain();
    let heads: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("on "))
        .collect();
    assert_eq!(heads, ["on the cpu", "on the gpu"], "{text}");
    // Where no call has a choice, the plan names no device.
    session.begin_explain();
    put(&mut session, 1.0, 4);
    let text = session.end_explain();
    assert!(!text.contains("on the"), "{text}");
    let mut session = routed(10.0, 0.1);
    session.begin_explain();
    put(&mut session, 1.0, 4);
    assert!(session.end_explain().starts_with("on the cpu\n"));
    assert_eq!(launches(&session), (0, 0));
}

#[test]
fn calls_leave_the_gpu_with_tensors_that_the_cpu_has_too() {
    let mut session = asked();
    // The CPU keeps floats, whatever a tensor is packed as.
    for (packing, words, is_there) in [
        (None, 1000, true),
        (None, 1 << 18, true),
        (None, (1 << 18) + 1, false),
        (Some(Packing::F16), 1 << 17, true),
        (Some(Packing::Bf16), (1 << 17) + 1, false),
        (Some(Packing::Int8), 17 << 12, true),
        (Some(Packing::Int8), (17 << 12) + 17, false),
        (Some(Packing::Int4), 9 << 12, true),
        (Some(Packing::Int4), (9 << 12) + 9, false),
    ] {
        let tensor = session.hold();
        let data = vec![7; words];
        session.fill_packed(tensor, &data, packing).expect("filled");
        let shown = format!("{packing:?} {words}");
        assert_eq!(session.tensors.has_copy(tensor), is_there, "{shown}");
        session.release(tensor);
    }
    // The host copies so many words in all, and what is given back counts.
    let held: Vec<u32> = (0..33).map(|_| session.hold()).collect();
    for tensor in &held {
        session.fill(*tensor, &vec![7; 1 << 18]).expect("filled");
    }
    let last = held[32];
    assert!(!session.tensors.has_copy(last));
    session.release(held[0]);
    session.fill(last, &vec![7; 1 << 18]).expect("filled");
    assert!(session.tensors.has_copy(last));
}

#[test]
fn a_model_is_measured_probe_by_probe() {
    let mut session = routed(10.0, 0.1);
    let before = session.model().expect("there is one");
    assert!(!before.1);
    session.calibrate();
    let mut probes = 0;
    while let Some(flight) = session.next_probe() {
        pollster::block_on(flight).expect("computed");
        // Later probes are shorter, and one failed.
        let failed = probes == 38;
        session.note_probe(if failed {
            f64::INFINITY
        } else {
            45.0 - f64::from(probes)
        });
        probes += 1;
    }
    assert_eq!(probes, 45, "the one that failed is launched once more");
    let (model, is_calibrated) = session.model().expect("there is one");
    assert!(is_calibrated && model.is_sound() && model != before.0);
    // The last of four rounds has the shortest times, and no probe can take less than one that
    // does nothing: the largest product was the last of the GPU's.
    assert!((model.flush_ms() - 8.0).abs() < 1e-9, "{model:?}");
    assert!(session.next_probe().is_none());
    assert_eq!((session.stats().calls, session.stats().batches), (0, 0));
    // A GPU that is lost meanwhile is measured no further.
    session.calibrate();
    session.lose(session.generation());
    assert!(session.next_probe().is_none());
}

#[test]
fn a_cpu_that_takes_over_is_not_measured() {
    let mut session = routed(10.0, 0.1);
    session.calibrate();
    assert!(session.next_probe().is_some());
    session.note_probe(1.0);
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20), NOW);
    // The probes of the GPU come first, then those of the CPU beside it.
    for _ in 0..20 {
        assert!(session.next_probe().is_none());
        session.note_probe(1.0);
    }
    assert!(session.model().is_none());
}
