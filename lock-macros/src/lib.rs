//! The attribute `locked`: an async function whose body runs under a lock.
//!
//! Users have it as `leasehold::locked`, with the feature `macros`.

mod answer;
mod expand;
mod options;
mod template;

use proc_macro::TokenStream;
use quote::ToTokens as _;
use syn::{ItemFn, parse_macro_input};

/// Runs the body of an async function while a lock is held.
///
/// ```
/// use leasehold::{Error, LockClient};
///
/// #[leasehold::locked(name = "order:{order_id}", wait = "5s")]
/// async fn pay(client: &LockClient, order_id: u64) -> Result<u64, Error> {
///     Ok(order_id)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let client = leasehold::connect("memory:").await?;
/// assert_eq!(pay(&client, 1001).await?, 1001);
/// # Ok(()) }
/// ```
///
/// The lock is acquired before the body and released after it, however the body ends. **When the lock is lost, the body is
/// dropped** where it awaits, and the function answers the error `Lost`.
///
/// The function is async and returns a `Result` whose error has `From<leasehold::Error>`, for the lock's own errors; those
/// of the body are passed on as they are. After a body that went well, a release that found the lock gone is an error,
/// and one that was merely not confirmed is none, as with `Lock::run`.
///
/// # Options
///
/// | option | value | unless given |
/// |---|---|---|
/// | `name` | a text with arguments and fields in braces, as `"{self.shard}:{order.id}"`; or an expression, as `name_of(&order)` | must be given |
/// | `client` | an expression: the `LockClient`, or what refers to one | the argument `client`, else the field `self.client` |
/// | `wait` | how long to wait, as `"5s"` or an expression; `"0s"` is one attempt, which fails with `TimedOut` | the client's |
/// | `lease`, `max_hold`, `min_hold` | a duration, as `"1m 30s"` or an expression | the client's, none, none |
/// | `owner` | an expression: the `Owner` who may re-enter | the ambient one, else a new one |
/// | `label` | as `name`: what people read beside the hold | none |
/// | `guard` | a name for the guard inside the body, as `guard = held`, for its fencing token | none |
/// | `crate` | the path of leasehold, where it is not `::leasehold` | `::leasehold` |
///
/// Texts may have format specifications (`{id:04}`); a brace is written twice. Durations in quotes are checked when the
/// function is compiled. All of them are evaluated when the future is first polled, before the lock is asked for.
///
/// # Reentrancy
///
/// The body runs in the scope of the lock's owner. A function that it awaits and that locks the same name re-enters, on
/// the same hold, instead of waiting for itself for ever:
///
/// ```
/// # use leasehold::{Error, LockClient};
/// #[leasehold::locked(name = "account:{account}", guard = held)]
/// async fn withdraw(client: &LockClient, account: u64) -> Result<u32, Error> {
///     Ok(held.hold_count())
/// }
///
/// #[leasehold::locked(name = "account:{account}")]
/// async fn close_account(client: &LockClient, account: u64) -> Result<u32, Error> {
///     withdraw(client, account).await
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # let client = leasehold::connect("memory:").await?;
/// assert_eq!(close_account(&client, 7).await?, 2);
/// # Ok(()) }
/// ```
///
/// What the inner function asks for does not count then, save a longer lease. Whoever has neither an `owner` nor an
/// ambient one gets a new owner for each call, and waits for every other call. Futures that one body runs side by side
/// (`join!`) share its owner, so the lock does not keep them apart from each other. A task that the body spawns is not
/// in that scope: awaited by the body, it waits for the body's lock, and the body for it.
///
/// # Cancel safety
///
/// Dropping the future drops the body and releases the lock in the background.
///
/// # Not with `async_trait`
///
/// That attribute makes the functions of an `impl` plain before this one sees them. Lock an inherent function, and call
/// it from the trait's.
#[proc_macro_attribute]
pub fn locked(options: TokenStream, function: TokenStream) -> TokenStream {
    let function = parse_macro_input!(function as ItemFn);
    let locked = syn::parse::<options::Options>(options).and_then(|options| expand::expand(options, &function));
    // Beside its mistake the function stays as it is, so that nothing else is told to be missing.
    locked
        .unwrap_or_else(|error| [error.into_compile_error(), function.into_token_stream()].into_iter().collect())
        .into()
}
