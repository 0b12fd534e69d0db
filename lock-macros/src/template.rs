//! Texts with arguments and fields in braces, for names and labels.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::{Expr, LitStr, Member};

/// A text that is put together when the function is called.
pub(crate) struct Template {
    /// With an empty pair of braces for each argument, as `format!` takes it.
    text: LitStr,
    arguments: Vec<Expr>,
}

impl Template {
    /// Reads a text in which `{argument}`, `{argument.field}` and `{argument:04}` stand for values.
    ///
    /// # Errors
    ///
    /// Each points at the text.
    pub(crate) fn parse(literal: &LitStr) -> syn::Result<Self> {
        let raw = literal.value();
        let (mut text, mut arguments) = (String::new(), Vec::new());
        let mut rest = raw.as_str();
        while let Some(brace) = rest.find(['{', '}']) {
            text.push_str(&rest[..brace]);
            let (here, after) = rest[brace..].split_at(1);
            if let Some(after) = after.strip_prefix(here) {
                // A brace that is written twice stands for itself; `format!` reads it so as well.
                text.push_str(here);
                text.push_str(here);
                rest = after;
                continue;
            }
            let inside = (here == "{").then(|| after.split_once('}')).flatten();
            let Some((inside, after)) = inside else {
                return Err(syn::Error::new(
                    literal.span(),
                    format!("a brace stands alone in {raw:?}; write it twice if it belongs to the text"),
                ));
            };
            let (argument, how) = inside.split_once(':').unwrap_or((inside, ""));
            arguments.push(value(literal, argument)?);
            text.push_str(if how.is_empty() { "{" } else { "{:" });
            text.push_str(how);
            text.push('}');
            rest = after;
        }
        text.push_str(rest);
        Ok(Template { text: LitStr::new(&text, literal.span()), arguments })
    }

    /// The expression of the text.
    pub(crate) fn tokens(&self) -> TokenStream {
        let Template { text, arguments } = self;
        quote_spanned!(text.span()=> ::std::format!(#text #(, #arguments)*))
    }
}

/// An argument or a field, as an expression that points at the text.
fn value(literal: &LitStr, argument: &str) -> syn::Result<Expr> {
    let refused = || {
        let told = format!(
            "{{{argument}}} is neither an argument nor a field of one; compute such a text with an expression, as name = \
             format!(...)"
        );
        syn::Error::new(literal.span(), told)
    };
    let expression = LitStr::new(argument, literal.span()).parse::<Expr>().map_err(|_| refused())?;
    if is_place(&expression) { Ok(expression) } else { Err(refused()) }
}

fn is_place(expression: &Expr) -> bool {
    match expression {
        Expr::Path(path) => path.path.get_ident().is_some(),
        Expr::Field(field) => matches!(field.member, Member::Named(_) | Member::Unnamed(_)) && is_place(&field.base),
        _ => false,
    }
}
