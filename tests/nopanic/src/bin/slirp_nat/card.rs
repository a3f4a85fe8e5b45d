//! A card on its cable.

use ne2000::{Model, Ne2000, Width};
use slirp_nat::card::Cable;
use slirp_nat::{Host, Nat};
use slirpkit_nopanic::{any, hidden, keep, one_of};

use crate::{any_call, any_event, any_time};

pub(crate) fn any_turns(nat: &mut Nat<'_>, host: &mut dyn Host) {
    let model = one_of(Model::Ne2000, &[Model::Rtl8029As]);
    let mut card = Ne2000::new(model, any());
    let mut buffer = [0; 2048];
    let mut cable = Cable::new(hidden(&mut buffer[..]));
    while any() {
        card.write(any(), Width::Dword, any());
        keep((cable.is_due(&card), cable.poll_at(&card, nat), cable.oversize()));
        cable.turn(any_time(), hidden(&mut card), nat, host);
        cable.on_host_event(any_time(), any_event(), &mut card, nat, host);
        any_call(nat, host, &mut cable.link(&mut card));
        keep((cable.room(&card), cable.reserve(any())));
        keep(cable.shortage_ended(hidden(&mut card)));
    }
}
