//! From a function with options to the function that holds the lock.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{AttrStyle, FnArg, Ident, ItemFn, Lifetime, Pat, Signature, spanned::Spanned as _};

use crate::{
    answer::{answer, inferred},
    options::{Length, Options},
};

/// The function, with its body under the lock.
///
/// # Errors
///
/// For a function that is not async, whose answer cannot tell an error, or whose client is not known.
pub(crate) fn expand(options: Options, function: &ItemFn) -> syn::Result<TokenStream> {
    let ItemFn { attrs, vis, modifiers, sig, block } = function;
    modifiers.require_empty()?;
    if sig.asyncness.is_none() {
        return Err(syn::Error::new(sig.fn_token.span, "only an async function can be locked; make it async fn"));
    }
    let answer = answer(sig)?;
    let client = match &options.client {
        Some(client) => quote!(#client),
        None => default_client(sig)?,
    };
    // What does not fit the function's answer is reported there, as code that is not the user's own.
    let at = answer.span().resolved_at(Span::mixed_site());
    let leasehold = match &options.leasehold {
        Some(path) => quote!(#path),
        None => quote_spanned!(at=> ::leasehold),
    };
    let name = options.name.tokens();
    let setters = setters(&options);
    let owner = match &options.owner {
        Some(owner) => quote!(#leasehold::Owner::clone(&(#owner))),
        None => quote!(#leasehold::Owner::current().unwrap_or_else(#leasehold::Owner::new)),
    };
    // Names that the body cannot see, nor clash with.
    let [owner_var, lock_var, guard_var, error_var] =
        ["owner", "lock", "guard", "error"].map(|name| Ident::new(name, Span::mixed_site()));
    let [answer_var, ended_var] = ["answer", "ended"].map(|name| Ident::new(name, at));
    let ended = Lifetime::new("'ended", Span::mixed_site());
    let shown = options.guard.as_ref().map(|guard| quote!(let #guard = &#guard_var;));
    let told = quote_spanned!(at=> #leasehold::__locked::Answer::of(#ended_var));
    let answer = inferred(answer);
    let statements = &block.stmts;
    // Those that stand in the body are written where they may stand.
    let (inner, outer): (Vec<_>, Vec<_>) = attrs.iter().partition(|attr| matches!(attr.style, AttrStyle::Inner(_)));
    Ok(quote! {
        #(#outer)*
        #vis #sig {
            #(#inner)*
            let #owner_var = #owner;
            let #lock_var = (#client).lock(#name).owner(&#owner_var) #setters;
            let #ended_var = #ended: {
                let #guard_var = match #lock_var.acquire().await {
                    ::core::result::Result::Ok(#guard_var) => #guard_var,
                    ::core::result::Result::Err(#error_var) => break #ended ::core::result::Result::Err(#error_var),
                };
                let #answer_var = {
                    #shown
                    #owner_var.scope(#guard_var.protect(async move {
                        // Tells the compiler what the body answers, for its `?` and its `return`.
                        if let ::core::option::Option::Some(#answer_var) = ::core::option::Option::None::<#answer> {
                            return #answer_var;
                        }
                        #(#statements)*
                    })).await
                };
                match #answer_var {
                    ::core::result::Result::Ok(#answer_var) => {
                        ::core::result::Result::Ok((#answer_var, #guard_var.release().await))
                    }
                    ::core::result::Result::Err(#error_var) => ::core::result::Result::Err(#error_var),
                }
            };
            #told
        }
    })
}

fn setters(options: &Options) -> TokenStream {
    let Options { wait, lease, max_hold, min_hold, label, .. } = options;
    let lengths = [("wait", wait), ("lease", lease), ("max_hold", max_hold), ("min_hold", min_hold)];
    let lengths = lengths.into_iter().filter_map(|(setter, length)| {
        let (setter, length) = (format_ident!("{setter}"), length.as_ref().map(Length::tokens)?);
        Some(quote!(.#setter(#length)))
    });
    let label = label.iter().map(|label| {
        let label = label.tokens();
        quote!(.label(#label))
    });
    lengths.chain(label).collect()
}

/// The argument `client`, else the field of that name.
fn default_client(sig: &Signature) -> syn::Result<TokenStream> {
    let argument = sig.inputs.iter().find_map(|input| match input {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(pat) if pat.ident == "client" => Some(&pat.ident),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    });
    match (argument, sig.receiver()) {
        (Some(client), _) => Ok(quote!(#client)),
        (None, Some(receiver)) => {
            let this = receiver.self_token;
            Ok(quote!(#this.client))
        }
        (None, None) => Err(syn::Error::new(
            sig.ident.span(),
            "the lock has no client; name an argument `client`, or give one as client = EXPRESSION",
        )),
    }
}
