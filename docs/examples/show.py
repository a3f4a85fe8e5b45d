"""Shows the network that `slirpkit run` gives, from within; it needs nothing but Python.

    slirpkit run --host-loopback --forward 127.0.0.1:18080-:8080 -- python3 docs/examples/show.py

It asks for a DHCP lease, pings the router, and downloads from a server of its own over a round
trip: out through the NAT to the host's 127.0.0.1:18080, which leads back in to port 8080 here.
"""

import hashlib
import http.server
import os
import socket
import struct
import threading
import urllib.request

ROUTER = "10.0.2.2"
SIZE = 64 << 20


def lease():
    """One DHCPDISCOVER (RFC 2131); the address offered, and the router and resolver with it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"tap0\0")
        client.settimeout(5)
        client.bind(("0.0.0.0", 68))
        xid, hardware = os.urandom(4), b"\x02" + os.urandom(5)
        fixed = b"\x01\x01\x06\x00" + xid + b"\x00\x00\x80\x00" + bytes(16) + hardware
        discover = fixed.ljust(236, b"\0") + bytes([99, 130, 83, 99, 53, 1, 1, 55, 2, 3, 6, 255])
        client.sendto(discover.ljust(300, b"\0"), ("255.255.255.255", 67))
        offer = client.recv(2048)
    assert offer[4:8] == xid and offer[28:34] == hardware, "an answer to somebody else"
    options, at = {}, 240
    while offer[at] != 255:
        if offer[at] == 0:  # padding
            at += 1
            continue
        length = offer[at + 1]
        options[offer[at]] = offer[at + 2 : at + 2 + length]
        at += 2 + length
    assert options[53] == b"\x02", "no offer"
    return [socket.inet_ntoa(address) for address in (offer[16:20], options[3], options[6])]


def ping(address):
    """One echo request (RFC 792)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as client:
        client.settimeout(5)
        client.sendto(struct.pack("!BBHHH", 8, 0, 0, 0, 1) + b"slirpkit", (address, 0))
        reply = client.recv(2048)
    assert reply[0] == 0 and reply[8:] == b"slirpkit", "no echo reply"


class Server(http.server.BaseHTTPRequestHandler):
    content = os.urandom(1 << 20) * (SIZE >> 20)

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_):
        pass


def download(url):
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=30) as response:
        while piece := response.read(1 << 20):
            digest.update(piece)
    assert digest.digest() == hashlib.sha256(Server.content).digest(), "the bytes differ"
    return digest.hexdigest()


address, router, resolver = lease()
print(f"lease     {address}, router {router}, name server {resolver}")
ping(ROUTER)
print(f"ping      {ROUTER} answers")
server = http.server.ThreadingHTTPServer(("", 8080), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
digest = download(f"http://{ROUTER}:18080/")
print(f"download  {SIZE >> 20} MiB out and back in through the NAT, SHA-256 {digest[:16]}... fits")
