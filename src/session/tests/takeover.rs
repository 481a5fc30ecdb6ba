//! A GPU that takes over from the CPU that had its place: where tensors lie then, what is
//! in flight, and who answers afterwards.

use super::recovery::Remedy;
use super::writing::{Pose, asked, fill, pose, result_of, written};
use super::*;
use crate::Code;
use crate::plan::KINDS;

/// A minute after everything that happened before.
const LATER: Millis = Millis(60_000.0);

fn gpu() -> Frail {
    Frail::new(1 << 20).gpu()
}

/// A session whose GPU answers everything, or leaves all to the CPU beside it.
fn session(flush: f64) -> Session<Frail> {
    let mut model = Model([0.0; FACTS.len()]);
    model.0[0] = flush;
    model.0[FACTS.len() - KINDS + 1] = 1e3;
    let session = Session::new(gpu(), config()).expect("valid settings");
    session.with_companion(Frail::new(1 << 20), Some(model.into()))
}

/// The CPU takes the place of a GPU, and its face looks for one.
fn fall_back(session: &mut Session<Frail>, pose: Pose) {
    session.lose(session.generation());
    assert_eq!(session.remedy(NOW), Some(Remedy::Reopen));
    session.replace_device(Frail::new(1 << 20), NOW);
    fill(session, pose);
    assert_eq!(session.info().engine, Engine::Cpu);
    assert_eq!(session.remedy(NOW), None);
    let next = session.next_look().expect("it looks again");
    assert_eq!(session.remedy(next), Some(Remedy::Look));
    assert_eq!((session.remedy(next), session.next_look()), (None, None));
}

fn answer(session: &mut Session<Frail>, call: Ticket) -> Vec<f32> {
    let sent = launch(session);
    result_of(&land_all(session, sent), call)
}

#[test]
fn a_gpu_takes_over_with_every_tensor_and_the_cpu_beside_it() {
    let mut session = session(0.0);
    let pose = pose(&mut session);
    let model = session.model();
    let packed = session.hold();
    fall_back(&mut session, pose);
    assert_eq!(session.model(), None);
    let floats: Vec<u32> = (0..64_u16).map(|n| f32::from(n).to_bits()).collect();
    let halves = Packing::F16.pack(&floats).expect("small numbers");
    session
        .fill_packed(packed, &halves, Some(Packing::F16))
        .expect("held");
    // Only the CPU has this value.
    let write = written(&mut session, pose, 7.0);
    let sent = launch(&mut session);
    land_all(&mut session, sent);
    assert_eq!(told(&mut session), [(write, Ok(()))]);

    session.welcome(gpu(), LATER);
    assert_eq!(session.due(LATER), Due::Now);
    assert!(session.take_over(LATER), "nothing is on its way");
    assert!(!session.take_over(LATER), "once");
    assert_eq!(session.info().engine, Engine::Gpu);
    assert_eq!((session.model(), session.next_look()), (model, None));
    for engine in [None, Some(Engine::Gpu), Some(Engine::Cpu)] {
        let call = asked(&mut session, pose, engine);
        assert_eq!(answer(&mut session, call), [7.0; 4], "{engine:?}");
    }
    assert!(session.devices.primary().launches > 0);
    let write = written(&mut session, pose, 8.0);
    let call = asked(&mut session, pose, None);
    let sent = launch(&mut session);
    let settled = land_all(&mut session, sent);
    assert_eq!(told(&mut session), [(write, Ok(()))]);
    assert_eq!(result_of(&settled, call), [8.0; 4]);
    session.bring(packed).expect("room");
    let unpacked = session
        .devices
        .primary()
        .tensor_words(packed)
        .expect("it is there");
    assert_eq!(unpacked, floats);
}

#[test]
fn a_model_set_while_the_cpu_answers_serves_the_gpu_that_comes_back() {
    let mut session = session(0.0);
    let pose = pose(&mut session);
    let (mut model, _) = session.model().expect("there is one");
    fall_back(&mut session, pose);
    model.0[0] = 7.0;
    session.set_model(model);
    assert_eq!(session.model(), None, "nothing is chosen yet");
    session.welcome(gpu(), LATER);
    assert!(session.take_over(LATER), "nothing is on its way");
    assert_eq!(session.model(), Some((model, true)));
}

#[test]
fn what_is_on_its_way_lands_first_and_nothing_follows() {
    let mut session = session(0.0);
    let pose = pose(&mut session);
    fall_back(&mut session, pose);
    let before = asked(&mut session, pose, None);
    let write = written(&mut session, pose, 7.0);
    let sent = launch(&mut session);
    session.welcome(gpu(), LATER);
    assert!(!session.take_over(LATER), "a batch is on its way");
    let after = asked(&mut session, pose, None);
    session.flush();
    assert!(session.launch(LATER).is_none(), "it waits for the GPU");
    assert_eq!(session.due(LATER), Due::Idle);
    let settled = land_all(&mut session, sent);
    assert_eq!(result_of(&settled, before), [0.0; 4]);
    assert_eq!(told(&mut session), [(write, Ok(()))]);
    assert_eq!(session.due(LATER), Due::Now);
    assert!(session.take_over(LATER));
    assert_eq!(answer(&mut session, after), [7.0; 4]);
    assert_eq!((session.pending(), session.info().engine), (0, Engine::Gpu));
}

#[test]
fn calls_that_asked_for_the_cpu_find_what_was_written_before() {
    let mut session = session(0.0);
    let pose = pose(&mut session);
    fall_back(&mut session, pose);
    // While there is only the CPU, a call may ask for it whatever the call reads.
    let write = written(&mut session, pose, 7.0);
    let call = asked(&mut session, pose, Some(Engine::Cpu));
    session.welcome(gpu(), LATER);
    assert!(session.take_over(LATER));
    let sent = launch(&mut session);
    let settled = land_all(&mut session, sent);
    assert_eq!(told(&mut session), [(write, Ok(()))]);
    assert_eq!(result_of(&settled, call), [7.0; 4]);
    // The CPU's copy is older than what the call wrote.
    let refused = writing::read(&mut session, pose, (None, Some(Engine::Cpu)));
    assert_eq!(refused.unwrap_err().code(), Code::InvalidInput);
}

#[test]
fn a_gpu_whose_buffers_are_too_small_is_sent_away() {
    let mut session = session(0.0);
    let pose = pose(&mut session);
    fall_back(&mut session, pose);
    let large = session.hold();
    session.fill(large, &[1; 5000]).expect("held");
    let refused = |session: &mut Session<Frail>| {
        session.welcome(Frail::new(1 << 14).gpu(), LATER);
        !session.take_over(LATER)
    };
    assert!(refused(&mut session));
    assert_eq!(session.info().engine, Engine::Cpu);
    assert_eq!(session.next_look(), Some(Millis(LATER.0 + 2000.0)));
    session.release(large);
    assert!(!refused(&mut session), "there is room now");
}

#[test]
fn a_gpu_that_took_over_is_lost_as_any_other() {
    let mut session = session(10.0);
    let pose = pose(&mut session);
    fall_back(&mut session, pose);
    session.welcome(gpu(), LATER);
    assert!(session.take_over(LATER));
    // No call was computed on the GPU, so it has none of the tensors.
    let call = asked(&mut session, pose, None);
    assert_eq!(answer(&mut session, call), [0.0; 4]);
    assert_eq!(session.devices.primary().launches, 0, "the CPU is sooner");
    assert!(!session.is_unheard());
    session.lose(session.generation());
    assert!(session.is_unheard());
    let later = Millis(LATER.0 + 5000.0);
    assert_eq!(session.remedy(later), Some(Remedy::Reopen));
    session.replace_device(gpu(), later);
    fill(&mut session, pose);
    let call = asked(&mut session, pose, Some(Engine::Gpu));
    assert_eq!(answer(&mut session, call), [0.0; 4]);
}

#[test]
fn a_router_that_rests_forgets_structures_that_are_given_up() {
    let mut session = session(0.0);
    let pose = pose(&mut session);
    let wide = session.recipe(ops::lerp(64, Timing::Call).expect("a width"));
    let effort = |session: &mut Session<Frail>, id: RecipeId| {
        let recipe = session.programs.recipes()[id.0 as usize].clone();
        let known = session.router.as_mut().expect("calls are routed");
        (known.row_work(id, &recipe).effort, recipe.effort())
    };
    let (known, own) = effort(&mut session, wide);
    assert_eq!(known, own);
    fall_back(&mut session, pose);
    assert!(!session.is_routing());
    session.forget([wide]);
    let narrow = session.recipe(ops::lerp(2, Timing::Call).expect("a width"));
    assert_eq!(narrow, wide, "the number is given again");
    session.welcome(gpu(), LATER);
    assert!(session.take_over(LATER) && session.is_routing());
    let (known, own) = effort(&mut session, narrow);
    assert_eq!(known, own, "nothing of the structure before");
}
