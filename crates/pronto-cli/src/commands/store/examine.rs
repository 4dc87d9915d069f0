//! `store verify` and `store list`: check stored repositories, and list them.

use std::io::Write as _;

use pronto::Watch;
use pronto_store::{GenerationSummary, StoreProblem, Verified};

use super::arguments::{CommonArguments, ListArguments, Verify};
use super::server::OpenStoredRepository;
use crate::commands::shared::{counted, utc};
use crate::json::Json;
use crate::{CliError, Context, ExitCode};

impl Verify {
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let store = common.open(&self.store, context)?;
        let names = match &self.name {
            Some(name) => vec![name.clone()],
            None => store.existing(store.repositories()?)?,
        };
        let progress = common.progress(context);
        let interrupt = context.interrupt.clone();
        let watch = Watch::from(&interrupt).with_progress(&*progress);
        let mut is_whole = true;
        let mut entries = Vec::new();
        for name in &names {
            let repository = store.repository(name)?;
            let verified = store.wait(repository.verify(!self.sizes_only, &watch))?;
            context.settle();
            is_whole &= verified.problems.is_empty();
            if self.json {
                entries.push(verified_entry(name, &verified));
                continue;
            }
            for problem in &verified.problems {
                writeln!(context.out, "{name}: {problem}")?;
            }
            writeln!(
                context.out,
                "{name}: {} up to {}, {} of {}, {}, {}",
                counted(verified.generations, "generation"),
                verified.newest,
                counted(verified.objects, "object"),
                counted(verified.bytes, "byte"),
                counted(verified.orphans, "orphan"),
                counted(verified.problems.len(), "problem")
            )?;
        }
        if self.json {
            context.print_document(vec![("repositories", Json::List(entries))])?;
        }
        Ok(match is_whole {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

impl ListArguments {
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let store = common.open(&self.store, context)?;
        let Some(name) = &self.name else {
            // Upkeep deletes the objects of removed repositories later.
            let names = store.existing(store.repositories()?)?;
            if self.json {
                let named = |name: String| Json::Object(vec![("name", name.into())]);
                let repositories = names.into_iter().map(named).collect();
                context.print_document(vec![("repositories", repositories)])?;
                return Ok(ExitCode::SUCCESS);
            }
            for name in names {
                writeln!(context.out, "{name}")?;
            }
            return Ok(ExitCode::SUCCESS);
        };
        let place = OpenStoredRepository::open(store, name)?;
        let generations = place.store.generations(&place.repository)?;
        if self.json {
            let entry = |listed: &GenerationSummary| {
                Json::Object(vec![
                    ("number", listed.number.into()),
                    ("created", utc(listed.created.as_secs()).into()),
                ])
            };
            let listed = generations.iter().map(entry).collect();
            let name = name.as_str().into();
            context.print_document(vec![("repository", name), ("generations", listed)])?;
            return Ok(ExitCode::SUCCESS);
        }
        for listed in generations {
            let time = utc(listed.created.as_secs());
            writeln!(context.out, "{}\t{time}", listed.number)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the entry of a verified repository in the JSON document.
fn verified_entry(name: &str, verified: &Verified) -> Json {
    let problems = verified.problems.iter().map(|problem| {
        let kind = match problem {
            StoreProblem::NoGenerations { .. } => "missing_generations",
            StoreProblem::Manifest { .. } => "unreadable_generation",
            StoreProblem::Chain { .. } => "broken_chain",
            StoreProblem::Missing { .. } => "missing_object",
            StoreProblem::Changed { .. } => "corrupt_object",
            _ => "other",
        };
        Json::Object(vec![
            ("kind", kind.into()),
            ("message", problem.to_string().into()),
        ])
    });
    Json::Object(vec![
        ("name", name.into()),
        ("newest", verified.newest.into()),
        ("generations", verified.generations.into()),
        ("objects", verified.objects.into()),
        ("bytes", verified.bytes.into()),
        ("orphans", verified.orphans.into()),
        ("problems", problems.collect()),
    ])
}
