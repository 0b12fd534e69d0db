//! The type that a function answers: found in its signature, and written so that its body can be told of it.

use syn::{ReturnType, Signature, Type, parse_quote, spanned::Spanned as _, visit_mut::VisitMut};

/// The type that the function answers.
///
/// # Errors
///
/// For one that is no `Result` by its look. What a name stands for is seen by the compiler alone, which has our words
/// for it from the trait `Answer` of the facade.
pub(crate) fn answer(sig: &Signature) -> syn::Result<&Type> {
    const WANTED: &str = "the function must return a Result whose error has From<leasehold::Error>, which is what the lock \
                          itself may fail with";
    match &sig.output {
        ReturnType::Default => Err(syn::Error::new(sig.ident.span(), WANTED)),
        ReturnType::Type(_, answer) => match peeled(answer) {
            found @ (Type::Path(_) | Type::Macro(_)) => Ok(found),
            other => Err(syn::Error::new(other.span(), WANTED)),
        },
    }
}

/// Without parentheses, and without the unseen ones around what a macro was given.
fn peeled(answer: &Type) -> &Type {
    match answer {
        Type::Group(group) => peeled(&group.elem),
        Type::Paren(paren) => peeled(&paren.elem),
        other => other,
    }
}

/// The same type where `impl Trait` may not stand: the compiler finds what it is from the body.
pub(crate) fn inferred(answer: &Type) -> Type {
    struct Infer;
    impl VisitMut for Infer {
        fn visit_type_mut(&mut self, part: &mut Type) {
            if matches!(part, Type::ImplTrait(_)) {
                *part = parse_quote!(_);
            } else {
                syn::visit_mut::visit_type_mut(self, part);
            }
        }
    }
    let mut answer = answer.clone();
    Infer.visit_type_mut(&mut answer);
    answer
}
