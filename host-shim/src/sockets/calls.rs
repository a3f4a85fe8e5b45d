//! How many system calls were made, by what they were made for.

macro_rules! calls {
    ($($(#[$doc:meta])* $field:ident,)+) => {
        /// System calls on sockets since the host was made.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct SystemCalls { $($(#[$doc])* pub $field: u64,)+ }

        impl SystemCalls {
            /// Every counter with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field),)+].into_iter()
            }
        }
    };
}

calls! {
    /// Waits for events.
    epoll_wait,
    /// Changes of what is waited for.
    epoll_ctl,
    /// Sockets made or accepted, and connects.
    open,
    /// Shutdowns and closes.
    close,
    /// Peeks at a stream.
    peek,
    /// Bytes taken from a stream and thrown away.
    consume,
    /// Gathered writes to a stream.
    send,
    /// Datagrams and network errors received, and attempts that found none.
    receive_datagram,
    /// Datagrams sent.
    send_datagram,
    /// Options of sockets read or set.
    option,
    /// Accepts that failed for want of descriptors or memory, to be tried again.
    accept_starved,
}
