//! Rights that the program gives up once everything is set up.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// Gives up every capability but those in `keep`, and the way back to them.
///
/// CAP_NET_RAW stays in any case, if it is there: it pings where the kernel grants nobody a ping
/// socket. A kernel that refuses costs only this.
pub(crate) fn drop_rights(keep: CapabilitySet) {
    match try_drop(keep | CapabilitySet::NET_RAW) {
        Ok(held) => log::debug!("kept of all capabilities: {held:?}"),
        Err(errno) => log::info!("cannot give up capabilities: {errno}"),
    }
}

fn try_drop(keep: CapabilitySet) -> rustix::io::Result<CapabilitySet> {
    let held = capabilities(None)?.permitted & keep;
    let inheritable = CapabilitySet::empty();
    set_no_new_privs(true)?;
    set_capabilities(None, CapabilitySets { effective: held, permitted: held, inheritable })?;
    Ok(held)
}
