//! Generated documents are as the code says, links lead somewhere, and cited ADRs exist.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::{reference, root};

pub(crate) fn run(write: bool) -> anyhow::Result<()> {
    let mut faults = Vec::new();
    for (name, text) in reference::all()? {
        let path = root().join("docs/reference").join(name);
        if fs::read_to_string(&path).ok().as_deref() == Some(&text) {
            continue;
        }
        if write {
            fs::create_dir_all(root().join("docs/reference"))?;
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            println!("written: docs/reference/{name}");
        } else {
            faults.push(format!(
                "docs/reference/{name} differs from the code: cargo xtask tidy --write"
            ));
        }
    }
    check_links(&mut faults)?;
    check_citations(&mut faults)?;
    if !faults.is_empty() {
        bail!("\n  {}", faults.join("\n  "));
    }
    Ok(())
}

/// Files below a directory with one of these extensions, in order.
fn files(directory: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("list {}", directory.display()))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    for path in paths {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        // What tools and runs leave behind.
        if ["target", "out", "corpus", "artifacts", "data"].contains(&name) || name.starts_with('.')
        {
            continue;
        }
        if path.is_dir() {
            files(&path, extensions, found)?;
        } else if path
            .extension()
            .is_some_and(|extension| extensions.iter().any(|one| extension == *one))
        {
            found.push(path);
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Relative links of all documents: `](target)`.
fn check_links(faults: &mut Vec<String>) -> anyhow::Result<()> {
    let mut documents = Vec::new();
    files(&root(), &["md"], &mut documents)?;
    for document in documents {
        let text = fs::read_to_string(&document)?;
        for after in text.split("](").skip(1) {
            let target = after.split([')', '#']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            if !document.parent().unwrap_or(&document).join(target).exists() {
                faults.push(format!(
                    "{}: the link to {target} leads nowhere",
                    shown(&document)
                ));
            }
        }
    }
    Ok(())
}

/// `ADR 0004` in code or documents.
fn check_citations(faults: &mut Vec<String>) -> anyhow::Result<()> {
    let mut records = Vec::new();
    files(&root().join("docs/adr"), &["md"], &mut records)?;
    let mut sources = Vec::new();
    files(&root(), &["md", "rs", "toml"], &mut sources)?;
    for source in sources {
        let text = fs::read_to_string(&source)?;
        for after in text.split("ADR ").skip(1) {
            let number: String = after.chars().take_while(char::is_ascii_digit).collect();
            let exists = records.iter().any(|record| {
                record
                    .file_name()
                    .and_then(|name| name.to_str())
                    .is_some_and(|name| name.starts_with(&number))
            });
            if number.len() == 4 && !exists {
                faults.push(format!("{}: there is no ADR {number}", shown(&source)));
            }
        }
    }
    Ok(())
}
