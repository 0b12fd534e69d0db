//! Every relative link of README, ARCHITECTURE and `docs/` leads to a file, and to a heading where it names one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages, by their paths from the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut found = vec![root().join("README.md"), root().join("ARCHITECTURE.md")];
    let mut directories = vec![root().join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a page of UTF-8");
        (path.strip_prefix(root()).expect("below the root").to_owned(), text)
    };
    found.into_iter().map(read).collect()
}

/// The lines outside of fenced code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    })
}

/// A line without what stands in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// The targets of `[text](target)` and `![text](target)`.
fn links(page: &str) -> Vec<String> {
    // A link's text may be broken over lines; its target is not.
    let text = prose(page).map(without_code).collect::<Vec<_>>().join("\n");
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

/// What GitHub makes of the headings, for the part of a link after `#`.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose(page).filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let before = seen.entry(slug.clone()).or_default();
        anchors.insert(if *before == 0 { slug } else { format!("{slug}-{before}") });
        *before += 1;
    }
    anchors
}

/// What is wrong with a link, if anything is.
fn broken(page: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = root().join(page).parent().expect("a directory").join(file);
    if !file.is_empty() && !target.exists() {
        return Some(format!("{}: {link} leads to no file", page.display()));
    }
    let anchor = anchor?;
    let there = if file.is_empty() { text.to_owned() } else { fs::read_to_string(&target).unwrap_or_default() };
    let known = anchors(&there);
    (!known.contains(anchor)).then(|| format!("{}: {link} leads to none of {known:?}", page.display()))
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for (page, text) in &pages() {
        for link in links(text) {
            count += 1;
            wrong.extend(broken(page, text, &link));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 50, "only {count} links were found");
}

#[test]
fn every_page_of_the_guide_is_in_its_list() {
    let pages = pages();
    let guide = Path::new("docs/guide");
    let listed: BTreeSet<_> = links(&pages[&guide.join("README.md")]).into_iter().collect();
    for page in pages.keys().filter(|page| page.parent() == Some(guide) && !page.ends_with("README.md")) {
        let name = page.file_name().expect("a file").to_string_lossy();
        assert!(listed.contains(&*name), "docs/guide/README.md does not list {name}");
    }
}

/// A page whose code nothing compiles would go stale.
#[test]
fn every_page_with_code_is_among_the_doctests() {
    let library = fs::read_to_string(root().join("src/lib.rs")).expect("the library");
    for (page, text) in pages() {
        let included = library.contains(&format!("include_str!(\"../{}\")", page.display()));
        assert!(included || !text.lines().any(|line| line.starts_with("```rust")), "{}", page.display());
    }
}

#[test]
fn pictures_need_nothing_from_elsewhere() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("docs/guide")).expect("the guide") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "svg") {
            continue;
        }
        count += 1;
        let picture = fs::read_to_string(&path).expect("a text");
        let inner = picture.replacen("xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
        for needed in ["://", "href", "@import", "url(", "<script", "<image"] {
            assert!(!inner.contains(needed), "{} has {needed}", path.display());
        }
        assert!(picture.contains("<title") && picture.contains("<desc"), "{} says what it shows", path.display());
    }
    assert_eq!(count, 2);
}

#[test]
fn what_is_broken_is_found() {
    let page = Path::new("docs/guide/README.md");
    let text =
        "# A *page*: of `mine`\n\n## Twice\n## Twice\n[a](b)\n```text\n[no](link)\n```\n`[no](link)` ![p](c.svg#x)";
    assert_eq!(links(text), ["b", "c.svg#x"]);
    let wanted = ["a-page-of-mine", "twice", "twice-1"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(wanted));
    for good in ["choosing.md", "../../README.md", "#twice-1", "https://example.org/#x"] {
        assert_eq!(broken(page, text, good), None);
    }
    for bad in ["missing.md", "#thrice", "choosing.md#no-such-heading"] {
        assert!(broken(page, text, bad).is_some(), "{bad}");
    }
}
