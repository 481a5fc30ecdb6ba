//! The words of WGSL that mean the same in a kernel's code as anywhere, and those that a kernel
//! has no use for. All other words are names of the code's own.
//!
//! TypeScript has the same lists; `tests/data/kernel-words.json` holds both to one.

/// Keywords of WGSL, which no member of a struct can be called.
pub(super) const KEYWORDS: &str = "\
alias break case const const_assert continue continuing default else false fn for if let loop \
return struct switch true var while";

/// Keywords, types and functions of WGSL.
pub(super) const WGSL: &str = "\
alias break case const const_assert continue continuing default else false fn for if let loop \
return struct switch true var while \
array bool f32 function i32 mat2x2 mat2x2f mat2x3 mat2x3f mat2x4 mat2x4f mat3x2 mat3x2f mat3x3 \
mat3x3f mat3x4 mat3x4f mat4x2 mat4x2f mat4x3 mat4x3f mat4x4 mat4x4f ptr u32 vec2 vec2f vec2i vec2u \
vec3 vec3f vec3i vec3u vec4 vec4f vec4i vec4u \
abs acos acosh all any asin asinh atan atan2 atanh bitcast ceil clamp cos cosh countLeadingZeros \
countOneBits countTrailingZeros cross degrees determinant distance dot dot4I8Packed dot4U8Packed \
exp exp2 extractBits faceForward firstLeadingBit firstTrailingBit floor fma fract frexp insertBits \
inverseSqrt ldexp length log log2 max min mix modf normalize pack2x16float pack2x16snorm \
pack2x16unorm pack4x8snorm pack4x8unorm pack4xI8 pack4xI8Clamp pack4xU8 pack4xU8Clamp pow \
quantizeToF16 radians reflect refract reverseBits round saturate select sign sin sinh smoothstep \
sqrt step tan tanh transpose trunc unpack2x16float unpack2x16snorm unpack2x16unorm unpack4x8snorm \
unpack4x8unorm unpack4xI8 unpack4xU8";

/// What needs more than a kernel's code has: what threads share, textures, and what is said to a
/// compiler.
pub(super) const REFUSED: &str = "\
arrayLength atomic atomicAdd atomicLoad atomicStore diagnostic discard dpdx dpdy enable f16 fwidth \
override requires sampler storageBarrier textureBarrier textureLoad textureSample textureStore \
workgroupBarrier workgroupUniformLoad";
