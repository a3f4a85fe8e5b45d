//! Ping.

use crate::guest::each;

#[test]
fn the_router_answers_pings_of_every_size() {
    each("ping", &["ping"], |setup| {
        for size in ["0", "56", "1472", "8000", "65507"] {
            let script = format!("ping -q -c 3 -i 0.01 -W 10 -s {size} 10.0.2.2");
            let text = setup.script(&["--mtu", "1500"], &script);
            assert!(text.contains("3 packets transmitted, 3 received"), "{}: {text}", setup.name());
        }
    });
}

#[test]
fn the_name_server_answers_too_and_others_do_not() {
    each("ping-others", &["ping"], |setup| {
        assert!(setup.script(&[], "ping -c 1 -W 10 10.0.2.3").contains(" 1 received"));
        let silent = setup.outcome(&[], "ping -c 1 -W 1 10.0.2.77");
        assert_eq!(silent.status.code(), Some(1), "{silent:?}");
    });
}
