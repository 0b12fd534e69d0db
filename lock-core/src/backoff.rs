//! How long to pause between two questions to a store: randomly, and longer each time.

use std::time::Duration;

/// A growing, random pause.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    step: Duration,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        Backoff { min, max: max.max(min), step: min }
    }

    /// The next pause: uniform between the shortest and the current step, which then doubles.
    pub(crate) fn next(&mut self) -> Duration {
        let spread = self.step.saturating_sub(self.min);
        let pause = self.min + spread.mul_f64(fastrand::f64());
        self.step = self.step.saturating_mul(2).min(self.max);
        pause
    }

    pub(crate) fn reset(&mut self) {
        self.step = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_maximum_and_stay_in_range() {
        let (min, max) = (Duration::from_millis(50), Duration::from_millis(500));
        let mut backoff = Backoff::new(min, max);
        assert_eq!(backoff.next(), min, "the first step has no spread");
        for _ in 0..200 {
            let pause = backoff.next();
            assert!((min..=max).contains(&pause), "{pause:?}");
        }
        assert_eq!(backoff.step, max);
        backoff.reset();
        assert_eq!(backoff.next(), min);
    }
}
