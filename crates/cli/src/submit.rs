//! `clearspan submit`

use std::io::Write as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context as _;
use clap::Args;
use clearspan_node::api::Answer;
use clearspan_node::client::{Ask, Client};
use serde::Serialize;

use crate::output;
use crate::remote::Remote;

/// Hand messages in at a running cluster
#[derive(Debug, Args)]
#[command(after_help = "\
A file holds one message: ISO 20022 XML, JSON, or a compact package (docs/format/package.md). Files go in one by one, those of a \
directory in the order of their paths; with --in-flight several at once, whose order only numbered messages keep. A message without an answer is sent again as it \
is, to the next node: it is never taken twice. Exit code 1 when one was refused or not stored, 3 when no node answered.

Example:
  clearspan submit --node 127.0.0.1:7201,127.0.0.1:7202 --cert alfa.crt --key alfa.key --ca nodes-ca.crt payment.xml")]
pub(crate) struct Submit {
    #[command(flatten)]
    remote: Remote,
    /// Messages: files, or directories with .xml, .json and .package files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Where the answers go, one file each under the message's name
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Messages on their way at once, each on a connection of its own
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    in_flight: u16,
    /// Ask for numbers and counts only, not for the answer's documents
    #[arg(long, conflicts_with = "out")]
    brief: bool,
}

/// One message's answer.
#[derive(Debug, Serialize)]
struct Line<'a> {
    file: &'a Path,
    node: String,
    #[serde(flatten)]
    answer: Answer,
}

impl Submit {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let mut files = Vec::new();
        for path in &self.files {
            gather(path, &mut files)?;
        }
        let next = AtomicUsize::new(0);
        let all_taken = AtomicBool::new(true);
        let in_flight = usize::from(self.in_flight).min(files.len());
        let work = || -> anyhow::Result<()> {
            let mut client = self.remote.client()?;
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (node, answer) = submit(&mut client, file, self.brief)?;
                if !self.show(file, node, answer, json)? {
                    all_taken.store(false, Ordering::Relaxed);
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..in_flight).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        Ok(if all_taken.into_inner() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    /// Shows what became of a message; says whether it was taken.
    fn show(&self, file: &Path, node: String, answer: Answer, json: bool) -> anyhow::Result<bool> {
        let taken = matches!(
            answer.status.as_str(),
            "taken" | "repeat" | "held" | "answered"
        );
        if let Some(out) = &self.out {
            write_answers(out, file, &answer)?;
        }
        let mut stdout = std::io::stdout().lock();
        if json {
            serde_json::to_writer(&mut stdout, &Line { file, node, answer })
                .map_err(std::io::Error::from)?;
            writeln!(stdout)?;
        } else {
            let number = |number: Option<u64>| number.map_or("-".to_owned(), output::count);
            writeln!(
                stdout,
                "{}  message {}  answer {}  {}{}",
                answer.status,
                number(answer.message_no),
                number(answer.answer_no),
                file.display(),
                answer
                    .code
                    .as_ref()
                    .map(|code| format!("  {code}"))
                    .unwrap_or_default()
            )?;
        }
        Ok(taken)
    }
}

fn gather(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("read {}", path.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    paths.sort();
    for path in paths {
        let is_message =
            |extension| extension == "xml" || extension == "json" || extension == "package";
        if path.is_dir() || path.extension().is_some_and(is_message) {
            gather(&path, files)?;
        }
    }
    Ok(())
}

fn submit(client: &mut Client, file: &Path, brief: bool) -> anyhow::Result<(String, Answer)> {
    let body = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
    let reply = client.send(&Ask {
        minimal: brief,
        ..Ask::message(body.into())
    })?;
    if reply.content_type.contains("problem") {
        return Err(anyhow::Error::new(reply.refusal()));
    }
    let answer = serde_json::from_slice(&reply.body)
        .with_context(|| format!("the answer to {}", file.display()))?;
    Ok((reply.node, answer))
}

fn write_answers(out: &Path, file: &Path, answer: &Answer) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("create {}", out.display()))?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    for document in &answer.documents {
        let path = out.join(format!("{stem}.{}", document.file_name));
        std::fs::write(&path, &document.xml)
            .with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}
