//! Small records of many batches at a time, read in rounds over the files.
//!
//! A round goes through the files section by section, and then begins anew. At every section some more jobs join;
//! when they have been round once, they have all their records. A record takes memory only from where it was
//! read until its job is done, so a job that is on its way holds half of its bytes on average: the same memory
//! brings nearly twice the records in a round as when all jobs joined and left together. And reading goes on while
//! batches are made of the jobs that left.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::broom::{Broom, Due};
use super::group::{Group, OVERHEAD_BYTES};
use super::ready::{Lease, Ready};
use super::sections::Sections;
use crate::engine::{Aside, Source, Unresolved};
use crate::error::Result;
use crate::files::Files;
use crate::gather::Job;
use crate::source::Ordered;

/// As many records tell well enough how those that are wanted are spread over the files.
const SAMPLE: u64 = 4096;
/// A job that would take a larger part of all memory is read one by one.
const TOO_LARGE: usize = 4;

/// The jobs of an order, most of them with their records' bytes.
pub(super) struct InRounds {
    order: Ordered,
    number: u64,
    /// So many jobs at the beginning are read one by one, so that nobody waits for the first round.
    one_by_one: u64,
    rounds: Option<Rounds>,
    thread: Option<JoinHandle<()>>,
    ready: Arc<Ready>,
}

impl InRounds {
    /// The same jobs as `order` has. `joining_bytes` of them join at every section, and all that is held for jobs
    /// is never more than `held_bytes`.
    pub fn new(order: Ordered, files: Arc<Files>, held_bytes: usize, joining_bytes: usize) -> Self {
        let ready = Ready::new(held_bytes);
        let rounds = Rounds {
            broom: Broom::new(files, Arc::clone(&order.numbering)),
            sections: Sections::of(order.sample(SAMPLE)),
            joining: Joining {
                order: order.clone(),
                number: 0,
                left_over: None,
                all_in: false,
                joining_bytes,
                credit_bytes: 0,
                too_large_bytes: held_bytes / TOO_LARGE,
            },
            groups: VecDeque::new(),
            ready: Arc::clone(&ready),
        };
        InRounds { order, number: 0, one_by_one: 0, rounds: Some(rounds), thread: None, ready }
    }

    fn begin(&mut self, mut rounds: Rounds) -> Result<()> {
        self.one_by_one = rounds.joining.skip_some()?;
        let end = End(Arc::clone(&self.ready));
        let go = move || {
            // also when this fails: whoever waits then reads for himself
            let _end = end;
            rounds.go();
        };
        // where there is no thread, `end` is dropped with what it would have done
        self.thread = thread::Builder::new().name("anybatch-sweep".into()).spawn(go).ok();
        Ok(())
    }
}

impl Source for InRounds {
    fn next_job(&mut self) -> Result<Option<Unresolved>> {
        if let Some(rounds) = self.rounds.take() {
            self.begin(rounds)?;
        }
        let Some(plain) = self.order.next_job()? else { return Ok(None) };
        let number = self.number;
        self.number += 1;
        if number < self.one_by_one {
            return Ok(Some(plain));
        }
        let ready = Arc::clone(&self.ready);
        Ok(Some(Box::new(move || {
            let mut job = plain()?;
            if let Some(group) = ready.group_of(number) {
                group.give(number, &mut job);
            }
            Ok(job)
        })))
    }

    fn aside(&self) -> Arc<dyn Aside> {
        Arc::clone(&self.ready) as _
    }
}

impl Drop for InRounds {
    fn drop(&mut self) {
        self.ready.end();
        if let Some(thread) = self.thread.take() {
            // whatever became of it: its jobs are read one by one
            let _ = thread.join();
        }
    }
}

struct End(Arc<Ready>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Reads as long as there are jobs.
struct Rounds {
    broom: Broom,
    sections: Sections,
    joining: Joining,
    /// Those on their way, the first of which is complete first.
    groups: VecDeque<Group>,
    ready: Arc<Ready>,
}

impl Rounds {
    fn go(&mut self) {
        let mut joining = self.joining.next_group(&self.sections, &self.ready);
        for section in (0..self.sections.count()).cycle() {
            // an error comes again where its job is wanted
            let Ok(group) = joining else { return };
            self.groups.extend(group);
            if self.groups.is_empty() && self.joining.all_in || self.ready.is_ended() {
                return;
            }
            joining = self.sweep(section);
            let complete = self.groups.iter().take_while(|group| group.is_complete()).count();
            self.groups.drain(..complete).for_each(|group| self.ready.put(group));
        }
    }

    /// Read what the groups want of a section, as far as there is room, and meanwhile find out who joins next.
    fn sweep(&mut self, section: usize) -> Result<Option<Group>> {
        let Rounds { broom, sections, joining, groups, ready } = self;
        let due = due(groups, section, sections.first(section));
        let mut room = ready.room_for(groups.iter().map(|group| group.wanted(section).1).sum());
        let deliver = |one: Due, frame: &[u8]| {
            if frame.len() <= room {
                room -= frame.len();
                groups[one.group as usize].keep(one.row, frame);
            }
        };
        let next = broom.sweep(&due, || ready.is_ended(), deliver, || joining.next_group(sections, ready));
        if !ready.is_ended() {
            groups.iter_mut().for_each(|group| group.pass(section));
        }
        ready.give_back(room);
        next
    }
}

/// What groups want of a section that begins with the record `first`, as it lies.
fn due(groups: &VecDeque<Group>, section: usize, first: u64) -> Vec<Due> {
    let mut due = Vec::new();
    for (group, number) in groups.iter().zip(0..) {
        let (wanted, _) = group.wanted(section);
        due.extend(wanted.iter().map(|one| Due {
            number: first + u64::from(one.ahead),
            group: number,
            row: one.row,
        }));
    }
    due.sort_unstable_by_key(|one| one.number);
    due
}

/// Says who joins next.
struct Joining {
    order: Ordered,
    number: u64,
    /// A job that could not join any more.
    left_over: Option<Job>,
    all_in: bool,
    joining_bytes: usize,
    /// What may join now: saved up where a job takes more than joins at one section.
    credit_bytes: usize,
    too_large_bytes: usize,
}

impl Joining {
    /// Pass over the jobs that are read one by one; how many those are.
    fn skip_some(&mut self) -> Result<u64> {
        let mut bytes = 0;
        while bytes < self.joining_bytes {
            let Some(job) = self.next_job()? else { break };
            bytes += bytes_of(&job);
            self.number += 1;
        }
        Ok(self.number)
    }

    /// The jobs that join now, if any do.
    fn next_group(&mut self, sections: &Sections, ready: &Arc<Ready>) -> Result<Option<Group>> {
        self.credit_bytes += self.joining_bytes;
        let mut group = Group::new(self.number, sections.count(), Lease::new(ready));
        while !ready.is_ended() {
            let Some(job) = self.next_job()? else {
                self.all_in = true;
                break;
            };
            let bytes = bytes_of(&job);
            if bytes > self.too_large_bytes {
                group.pass_over();
                continue;
            }
            if bytes > self.credit_bytes || !has_room(&job, ready) {
                self.left_over = Some(job);
                break;
            }
            self.credit_bytes -= bytes;
            group.join(&job, sections);
        }
        self.number += group.jobs() as u64;
        group.close();
        Ok((group.jobs() > 0).then_some(group))
    }

    fn next_job(&mut self) -> Result<Option<Job>> {
        if self.left_over.is_some() {
            return Ok(self.left_over.take());
        }
        self.order.next_job()?.map(|job| job()).transpose()
    }
}

/// Take room for what a job holds from the beginning.
fn has_room(job: &Job, ready: &Ready) -> bool {
    let wanted = job.places.len() * OVERHEAD_BYTES;
    let room = ready.room_for(wanted);
    if room < wanted {
        ready.give_back(room);
    }
    room == wanted
}

/// What a job holds when all of its records are there.
fn bytes_of(job: &Job) -> usize {
    let frames: u64 = job.places.iter().map(|place| place.extent.bytes()).sum();
    usize::try_from(frames).unwrap_or(usize::MAX).saturating_add(job.places.len() * OVERHEAD_BYTES)
}
