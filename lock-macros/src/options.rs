//! The options of the attribute: each known, given once, and of a kind that makes sense.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    Expr, ExprLit, Ident, Lit, LitStr, Path, Token,
    ext::IdentExt as _,
    parse::{Parse, ParseStream},
};

use crate::template::Template;

/// Every option, in the order of the documentation.
const KNOWN: &[&str] = &["name", "client", "wait", "lease", "max_hold", "min_hold", "owner", "label", "guard", "crate"];

/// What stands between the attribute's parentheses.
pub(crate) struct Options {
    pub(crate) name: Text,
    pub(crate) client: Option<Expr>,
    pub(crate) wait: Option<Length>,
    pub(crate) lease: Option<Length>,
    pub(crate) max_hold: Option<Length>,
    pub(crate) min_hold: Option<Length>,
    pub(crate) owner: Option<Expr>,
    pub(crate) label: Option<Text>,
    pub(crate) guard: Option<Ident>,
    pub(crate) leasehold: Option<Path>,
}

/// A text: with arguments in braces, or whatever an expression gives.
pub(crate) enum Text {
    Template(Template),
    Computed(Expr),
}

/// A duration: known when the function is compiled, or whatever an expression gives.
pub(crate) enum Length {
    Known(Duration),
    Computed(Expr),
}

impl Text {
    /// The expression of this text.
    pub(crate) fn tokens(&self) -> TokenStream {
        match self {
            Text::Template(template) => template.tokens(),
            Text::Computed(expression) => quote!(#expression),
        }
    }
}

impl Length {
    /// The expression of this duration.
    pub(crate) fn tokens(&self) -> TokenStream {
        match self {
            Length::Known(length) => {
                let (secs, nanos) = (length.as_secs(), length.subsec_nanos());
                quote!(::core::time::Duration::new(#secs, #nanos))
            }
            Length::Computed(expression) => quote!(#expression),
        }
    }
}

/// Without the unseen parentheses around what a macro was given: its literals are literals here too.
fn peeled(expression: Expr) -> Expr {
    match expression {
        Expr::Group(group) => peeled(*group.expr),
        other => other,
    }
}

impl Parse for Text {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        match peeled(input.parse()?) {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Template::parse(&text).map(Text::Template),
            Expr::Lit(other) => Err(syn::Error::new_spanned(other, "expected a text in quotes, or an expression")),
            expression => Ok(Text::Computed(expression)),
        }
    }
}

impl Parse for Length {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        match peeled(input.parse()?) {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                humantime::parse_duration(&text.value()).map(Length::Known).map_err(|error| bad_duration(&text, &error))
            }
            Expr::Lit(other) => Err(syn::Error::new_spanned(
                other,
                "expected a duration in quotes, such as \"500ms\", or an expression",
            )),
            expression => Ok(Length::Computed(expression)),
        }
    }
}

fn bad_duration(text: &LitStr, error: &humantime::DurationError) -> syn::Error {
    let told = format!("{:?} is no duration ({error}); write it as \"500ms\", \"30s\" or \"1h 30m\"", text.value());
    syn::Error::new(text.span(), told)
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut name = None;
        let (mut client, mut owner, mut guard, mut leasehold) = (None, None, None, None);
        let (mut wait, mut lease, mut max_hold, mut min_hold, mut label) = (None, None, None, None, None);
        while !input.is_empty() {
            // `crate` is a keyword.
            let key = input.call(Ident::parse_any)?;
            let known = key.to_string();
            if !KNOWN.contains(&known.as_str()) {
                return Err(unknown(&key));
            }
            input.parse::<Token![=]>()?;
            match known.as_str() {
                "name" => once(&mut name, &key, input)?,
                "client" => once(&mut client, &key, input)?,
                "wait" => once(&mut wait, &key, input)?,
                "lease" => once(&mut lease, &key, input)?,
                "max_hold" => once(&mut max_hold, &key, input)?,
                "min_hold" => once(&mut min_hold, &key, input)?,
                "owner" => once(&mut owner, &key, input)?,
                "label" => once(&mut label, &key, input)?,
                "guard" => once(&mut guard, &key, input)?,
                _ => once(&mut leasehold, &key, input)?,
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let name = name.ok_or_else(|| {
            syn::Error::new(Span::call_site(), "the lock has no name; give it as name = \"order:{order_id}\"")
        })?;
        Ok(Options { name, client, wait, lease, max_hold, min_hold, owner, label, guard, leasehold })
    }
}

fn once<T: Parse>(slot: &mut Option<T>, key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
    if slot.replace(input.parse()?).is_some() {
        return Err(syn::Error::new(key.span(), format!("option {key} is given twice; leave one of them")));
    }
    Ok(())
}

fn unknown(key: &Ident) -> syn::Error {
    /// Below this, two words have little in common.
    const ALIKE: f64 = 0.8;
    let text = key.to_string();
    let alike = KNOWN.iter().map(|known| (strsim::jaro_winkler(&text, known), known));
    let nearest = alike.filter(|(how, _)| *how >= ALIKE).max_by(|(a, _), (b, _)| a.total_cmp(b));
    let meant = nearest.map(|(_, known)| format!("did you mean {known}? ")).unwrap_or_default();
    let told = format!("unknown option {text}; {meant}the known ones are {}", KNOWN.join(", "));
    syn::Error::new(key.span(), told)
}
