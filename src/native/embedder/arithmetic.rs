//! What a model's products are computed in, where its caller leaves a choice.

use super::self_test::SelfTest;
use super::vocabulary::Split;
use crate::embed::{Config, check_arithmetic, cosine};
use crate::error::Error;
use crate::graph::Precision;
use crate::native::gpu::Gpu;
use crate::native::shared::Purpose;

/// The floats that the products of a model's matrices are computed in. Everything else is computed
/// in 32 bits: attention, norms and functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// 32-bit floats.
    #[default]
    F32,
    /// 16-bit floats on GPUs with the feature `shader-f16`: factors are rounded to 11 bits, 32
    /// products in a row are summed in 16 bits, and these sums in 32. Where the CPU takes over, and
    /// on a GPU that lacks the feature, products are computed in 32 bits.
    F16,
    /// [`Arithmetic::F16`] where it is sound, and otherwise [`Arithmetic::F32`].
    Auto,
}

/// The feature without which there are no 16-bit floats in kernels.
const FEATURE: &str = "shader-f16";

impl SelfTest<'_, '_> {
    /// The precision of the model's products on these sessions' devices. Few texts pass the model in
    /// both; without `verify` no text passes where the caller asks for 16 bits.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where the caller asks for 16 bits and a device lacks them, or the
    /// model needs more; and whatever befalls the calls.
    pub(super) fn precision(
        &self,
        gpus: &[Gpu],
        tokenizer: &Split,
        wanted: Arithmetic,
    ) -> Result<Precision, Error> {
        let judged = match wanted {
            Arithmetic::F32 => return Ok(Precision::F32),
            _ => check_arithmetic(self.config, 1.0).and_then(|()| check_devices(gpus)),
        };
        let judged = judged.and_then(|()| match wanted {
            Arithmetic::F16 if !self.verifies => Ok(()),
            // Of a handle whose calls are not sent nothing is known.
            _ if self.replica.gpu.shared().purpose != Purpose::Send => Ok(()),
            _ => check_arithmetic(self.config, self.cosine_of_precisions(tokenizer)?),
        });
        match judged {
            Ok(()) => Ok(Precision::F16),
            Err(Error::Unsupported(_)) if wanted == Arithmetic::Auto => Ok(Precision::F32),
            Err(error) => Err(error),
        }
    }

    /// The least cosine of the texts' vectors in both precisions.
    fn cosine_of_precisions(&self, tokenizer: &Split) -> Result<f32, Error> {
        let texts = self.texts(tokenizer);
        let [full, half] = Precision::ALL.map(|precision| {
            let config = Config {
                precision,
                ..self.config.clone()
            };
            self.vectors(&config, texts.iter().map(Vec::as_slice))
        });
        let (full, half) = (full?, half?);
        let pairs = full.iter().zip(&half);
        let cosines = pairs.map(|(full, half)| cosine(full, half));
        Ok(cosines.fold(1.0, least))
    }
}

/// The lesser of two cosines; what is no number is the least.
pub(super) fn least(one: f32, other: f32) -> f32 {
    // Written so that NaN stays.
    if one <= other || one.is_nan() {
        one
    } else {
        other
    }
}

fn check_devices(gpus: &[Gpu]) -> Result<(), Error> {
    let has = |gpu: &Gpu| gpu.info().features.iter().any(|name| name == FEATURE);
    match gpus.iter().all(has) {
        true => Ok(()),
        false => Err(Error::Unsupported(
            "16-bit arithmetic needs a GPU with the feature shader-f16; load the model with the arithmetic f32, or auto".into(),
        )),
    }
}
