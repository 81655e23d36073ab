//! `clearspan receipts`

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use clearspan_node::api::Receipts as Page;
use clearspan_node::client::{Ask, Retry};
use serde_json::json;

use crate::remote::Remote;

/// Fetch a participant's numbered output from a running cluster
#[derive(Debug, Args)]
#[command(after_help = "\
Every node has the same bytes under the same number. With --out each document is written under its name; with \
--acknowledge the cluster is told once they are durable, and the next call begins after them.

Example:
  clearspan receipts --node 127.0.0.1:7201 --cert alfa.crt --key alfa.key --ca nodes-ca.crt --out receipts --acknowledge")]
pub(crate) struct Receipts {
    #[command(flatten)]
    remote: Remote,
    /// The first number; after what was acknowledged when left out
    #[arg(long)]
    from: Option<u64>,
    /// Whose, for an auditor
    #[arg(long, value_name = "BIC")]
    participant: Option<String>,
    /// Where documents go
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Say that they are safely stored
    #[arg(long, requires = "out")]
    acknowledge: bool,
    /// Go on and wait for more
    #[arg(long)]
    follow: bool,
}

/// How long a node may wait for the next number.
const POLL_MS: u64 = 20_000;

impl Receipts {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let mut client = self.remote.client()?;
        let mut from = self.from;
        loop {
            let mut path = format!(
                "/v1/receipts?max=1000&wait_ms={}",
                if self.follow { POLL_MS } else { 0 }
            );
            if let Some(from) = from {
                path.push_str(&format!("&from={from}"));
            }
            if let Some(participant) = &self.participant {
                path.push_str(&format!("&participant={participant}"));
            }
            let page: Page = client.json(&Ask::get(&path))?;
            self.show(&page, json)?;
            if let (true, Some(last)) = (self.acknowledge, page.receipts.last()) {
                let body = json!({ "through": last.number }).to_string();
                let ask = Ask::post("/v1/receipts/acknowledge", body, Retry::Always);
                client.json::<serde_json::Value>(&ask)?;
            }
            from = Some(page.next);
            if page.next >= page.end && !self.follow {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    fn show(&self, page: &Page, json: bool) -> anyhow::Result<()> {
        if let Some(out) = &self.out {
            for document in page.receipts.iter().flat_map(|receipt| &receipt.documents) {
                write(&out.join(&document.file_name), document.xml.as_bytes())?;
            }
            if !page.receipts.is_empty() {
                File::open(out)
                    .and_then(|dir| dir.sync_all())
                    .with_context(|| format!("sync {}", out.display()))?;
            }
        }
        let mut stdout = std::io::stdout().lock();
        for receipt in &page.receipts {
            if json {
                serde_json::to_writer(&mut stdout, receipt).map_err(std::io::Error::from)?;
                writeln!(stdout)?;
            } else {
                for document in &receipt.documents {
                    writeln!(
                        stdout,
                        "{:>8}  {}  {}",
                        receipt.number, document.name, document.file_name
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Whole or not at all, and durable.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let step = || format!("write {}", path.display());
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).with_context(step)?;
    }
    let part = path.with_extension("part");
    let mut file = File::create(&part).with_context(step)?;
    file.write_all(bytes).with_context(step)?;
    file.sync_all().with_context(step)?;
    std::fs::rename(&part, path).with_context(step)
}
