//! One description of a value's fields serves writing, reading and digesting.
//!
//! The order of fields is stated once per type, by the macro `layout!`; `codec` gives the bytes (widths,
//! byte order, caps, checksums) by implementing [`Sink`] and [`Source`]. So what is written can always be read, and a
//! snapshot, an entry and a state digest cannot disagree about what belongs to a value (ADR 0004).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

/// Where values are written.
pub trait Sink {
    /// Appends raw bytes of a length both sides know.
    fn raw(&mut self, bytes: &[u8]);
}

/// Where values are read. Lengths and contents come from a disk or a peer: everything may be refused.
pub trait Source {
    /// Why reading stopped.
    type Error;
    /// The next `N` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    fn raw<const N: usize>(&mut self) -> Result<[u8; N], Self::Error>;
    /// The next `len` bytes, without copying where the source can.
    ///
    /// # Errors
    /// When fewer are left.
    fn slice(&mut self, len: usize) -> Result<Bytes, Self::Error>;
    /// How many bytes are left: no collection can have more elements than that.
    fn left(&self) -> usize;
    /// The error for a value that its type does not allow.
    fn invalid(&self, what: &'static str) -> Self::Error;
}

/// A value with a known order of fields.
pub trait Layout: Sized {
    /// Writes it.
    fn put<S: Sink>(&self, sink: &mut S);
    /// Reads it.
    ///
    /// # Errors
    /// As the source says; also when a value is not one of its type.
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error>;
}

macro_rules! integer {
    ($($int:ty),+) => { $(
        impl Layout for $int {
            #[inline]
            fn put<S: Sink>(&self, sink: &mut S) {
                sink.raw(&self.to_le_bytes());
            }
            #[inline]
            fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
                source.raw().map(<$int>::from_le_bytes)
            }
        }
    )+ };
}
integer!(u8, u16, u32, u64, u128, i128);

impl Layout for bool {
    fn put<S: Sink>(&self, sink: &mut S) {
        u8::from(*self).put(sink);
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        match u8::take(source)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(source.invalid("a flag is neither 0 nor 1")),
        }
    }
}

fn put_len<S: Sink>(len: usize, sink: &mut S) {
    // No collection here comes near 2^32: queues, windows and messages have smaller maxima.
    u32::try_from(len)
        .expect("a collection of a ledger stays below 2^32 elements")
        .put(sink);
}

fn take_len<S: Source>(source: &mut S) -> Result<usize, S::Error> {
    let len = u32::take(source)? as usize;
    if len > source.left() {
        Err(source.invalid("a length exceeds what is left"))
    } else {
        Ok(len)
    }
}

impl<T: Layout> Layout for Option<T> {
    fn put<S: Sink>(&self, sink: &mut S) {
        self.is_some().put(sink);
        if let Some(value) = self {
            value.put(sink);
        }
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        if bool::take(source)? {
            T::take(source).map(Some)
        } else {
            Ok(None)
        }
    }
}

macro_rules! sequence {
    ($collection:ident) => {
        impl<T: Layout> Layout for $collection<T> {
            fn put<S: Sink>(&self, sink: &mut S) {
                put_len(self.len(), sink);
                for value in self {
                    value.put(sink);
                }
            }
            fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
                let len = take_len(source)?;
                // The capacity is bounded by what can still be read, not by what the length claims.
                let mut values =
                    Self::with_capacity(len.min(source.left() / size_of::<T>().max(1) + 1));
                for _ in 0..len {
                    values.extend([T::take(source)?]);
                }
                Ok(values)
            }
        }
    };
}
sequence!(Vec);
sequence!(VecDeque);

impl<T: Layout + Ord> Layout for BTreeSet<T> {
    fn put<S: Sink>(&self, sink: &mut S) {
        put_len(self.len(), sink);
        for value in self {
            value.put(sink);
        }
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        (0..take_len(source)?).map(|_| T::take(source)).collect()
    }
}

impl<K: Layout + Ord, V: Layout> Layout for BTreeMap<K, V> {
    fn put<S: Sink>(&self, sink: &mut S) {
        put_len(self.len(), sink);
        for (key, value) in self {
            key.put(sink);
            value.put(sink);
        }
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        (0..take_len(source)?)
            .map(|_| Ok((K::take(source)?, V::take(source)?)))
            .collect()
    }
}

impl<A: Layout, B: Layout> Layout for (A, B) {
    fn put<S: Sink>(&self, sink: &mut S) {
        self.0.put(sink);
        self.1.put(sink);
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        Ok((A::take(source)?, B::take(source)?))
    }
}

impl<A: Layout, B: Layout, C: Layout> Layout for (A, B, C) {
    fn put<S: Sink>(&self, sink: &mut S) {
        self.0.put(sink);
        self.1.put(sink);
        self.2.put(sink);
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        Ok((A::take(source)?, B::take(source)?, C::take(source)?))
    }
}

impl<T: Layout, const N: usize> Layout for [T; N] {
    fn put<S: Sink>(&self, sink: &mut S) {
        for value in self {
            value.put(sink);
        }
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let mut values = Vec::with_capacity(N);
        for _ in 0..N {
            values.push(T::take(source)?);
        }
        values
            .try_into()
            .map_err(|_| source.invalid("an array has another length"))
    }
}

impl<T: Layout> Layout for Box<T> {
    fn put<S: Sink>(&self, sink: &mut S) {
        (**self).put(sink);
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        T::take(source).map(Box::new)
    }
}

impl Layout for Bytes {
    fn put<S: Sink>(&self, sink: &mut S) {
        put_len(self.len(), sink);
        sink.raw(self);
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let len = take_len(source)?;
        source.slice(len)
    }
}

impl Layout for String {
    fn put<S: Sink>(&self, sink: &mut S) {
        put_len(self.len(), sink);
        sink.raw(self.as_bytes());
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let len = take_len(source)?;
        let bytes = source.slice(len)?;
        Self::from_utf8(bytes.to_vec()).map_err(|_| source.invalid("a text is not UTF-8"))
    }
}

/// States the order of fields of a struct, or the tags and fields of an enum's variants. After a semicolon stand fields
/// that only pass through while an entry is applied and are empty otherwise.
macro_rules! layout {
    (struct $name:ident { $($field:ident),* $(,)? $(; $($passing:ident),+)? }) => {
        impl $crate::layout::Layout for $name {
            #[inline]
            fn put<S: $crate::layout::Sink>(&self, sink: &mut S) {
                $( $crate::layout::Layout::put(&self.$field, sink); )*
            }
            #[inline]
            fn take<S: $crate::layout::Source>(source: &mut S) -> Result<Self, S::Error> {
                Ok(Self {
                    $( $field: $crate::layout::Layout::take(source)?, )*
                    $( $( $passing: Default::default(), )+ )?
                })
            }
        }
    };
    (enum $name:ident { $($tag:literal => $variant:ident $( { $($field:ident),* $(,)? } )? $( ( $inner:ident ) )? ),* $(,)? }) => {
        impl $crate::layout::Layout for $name {
            fn put<S: $crate::layout::Sink>(&self, sink: &mut S) {
                match self {
                    $( Self::$variant $( { $($field),* } )? $( ( $inner ) )? => {
                        let tag: u8 = $tag;
                        $crate::layout::Layout::put(&tag, sink);
                        $( $( $crate::layout::Layout::put($field, sink); )* )?
                        $( $crate::layout::Layout::put($inner, sink); )?
                    } )*
                }
            }
            fn take<S: $crate::layout::Source>(source: &mut S) -> Result<Self, S::Error> {
                match <u8 as $crate::layout::Layout>::take(source)? {
                    $( $tag => Ok(Self::$variant
                        $( { $( $field: $crate::layout::Layout::take(source)? ),* } )?
                        $( ( { let $inner = $crate::layout::Layout::take(source)?; $inner } ) )?
                    ), )*
                    _ => Err(source.invalid(concat!("no such kind of ", stringify!($name)))),
                }
            }
        }
    };
}
pub(crate) use layout;
