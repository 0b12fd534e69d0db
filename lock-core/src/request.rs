//! A checked request for one lock: what a `Lock`'s options become before anything is sent (L15).

use std::{sync::Arc, time::Duration};

use tracing::Span;

use crate::{
    Claim, ClaimId, Error, ErrorKind, FencingToken, HolderInfo, Intent, LockKind, LockName, Owner, Renew,
    options::fit_lease, shared::Shared,
};

/// The most bytes a label may have: it is for people, and stored with every claim.
pub(crate) const MAX_LABEL_BYTES: usize = 256;

/// What the user asked of one lock, unchecked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) lease: Option<Duration>,
    pub(crate) wait: Option<Option<Duration>>,
    pub(crate) renew: Renew,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) min_hold: Option<Duration>,
    pub(crate) owner: Option<Owner>,
    pub(crate) label: Option<Arc<str>>,
}

/// What the user asked, checked and completed from the client's settings.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) name: LockName,
    pub(crate) lease: Duration,
    pub(crate) wait: Option<Duration>,
    pub(crate) renew: Renew,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) min_hold: Option<Duration>,
    pub(crate) owner: Option<Owner>,
    pub(crate) holder: Arc<HolderInfo>,
    /// Where the hold belongs in the caller's trace.
    pub(crate) caller: Span,
    pub(crate) request_timeout: Duration,
}

impl Request {
    /// Checks the wishes. Reads the ambient owner and span, so it must run inside the first poll.
    pub(crate) fn new(shared: &Shared, name: &Result<LockName, Error>, wishes: &Wishes) -> Result<Self, Error> {
        let name = name.clone()?;
        if !shared.capabilities.kinds.contains(&LockKind::Exclusive) {
            let store = &shared.capabilities.store;
            return Err(Error::new(ErrorKind::Unsupported, format!("{store} has no exclusive locks")));
        }
        let lease = fit_lease(wishes.lease.unwrap_or(shared.options.lease), &shared.capabilities)?;
        if wishes.max_hold.is_some_and(|max_hold| max_hold.is_zero()) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("max_hold 0ns for lock {name:?} is out of range: it must be longer than zero"),
            ));
        }
        check_min_hold(&name, lease, wishes)?;
        let holder = match &wishes.label {
            None => Arc::clone(&shared.holder),
            Some(label) if label.len() <= MAX_LABEL_BYTES => {
                Arc::new(HolderInfo { label: Some(label.to_string()), ..(*shared.holder).clone() })
            }
            Some(label) => {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!(
                        "the label for lock {name:?} has {} bytes; at most {MAX_LABEL_BYTES} are allowed",
                        label.len()
                    ),
                ));
            }
        };
        Ok(Request {
            lease,
            wait: wishes.wait.unwrap_or(shared.options.wait),
            renew: wishes.renew,
            max_hold: wishes.max_hold,
            min_hold: wishes.min_hold,
            owner: wishes.owner.clone().or_else(Owner::current),
            holder,
            caller: Span::current(),
            request_timeout: shared.options.request_timeout(lease),
            name,
        })
    }

    /// A new claim for this request.
    pub(crate) fn claim(&self, shared: &Shared, intent: Intent) -> Claim {
        Claim {
            namespace: shared.options.namespace.clone(),
            name: self.name.clone(),
            kind: LockKind::Exclusive,
            id: ClaimId::random(),
            intent,
            lease: self.lease,
            holder: Arc::clone(&self.holder),
            min_token: FencingToken::ZERO,
        }
    }
}

/// Refuses a shortest time that the hold cannot last for.
fn check_min_hold(name: &LockName, lease: Duration, wishes: &Wishes) -> Result<(), Error> {
    let longest = match wishes.renew {
        Renew::Auto => wishes.max_hold,
        Renew::Off => Some(wishes.max_hold.unwrap_or(lease).min(lease)),
    };
    match (wishes.min_hold, longest) {
        (Some(min_hold), Some(longest)) if min_hold > longest => Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "min_hold {min_hold:?} for lock {name:?} is out of range: the hold lasts at most {longest:?}; shorten \
                 it, or lengthen max_hold or the lease"
            ),
        )),
        _ => Ok(()),
    }
}
