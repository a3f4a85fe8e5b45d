// The host as JavaScript: one server that checks an upload, serves a download and echoes
// datagrams, as src/server.rs does; the bytes are those of src/pattern.rs.

const DOWNLOAD_LENGTH = 1 << 20;
const SEND_ROOM = 6000;
const ADDRESS = 0xcb007105; // 203.0.113.5
const PORT = 80;
const STREAM = 1, DATAGRAMS = 2;
const READABLE = 1, WRITABLE = 2;

const download = (place) => Math.imul(place, 0x9e3779b1) >>> 24;
const upload = (place) => download(place) ^ 0xff;

class Stream {
    served = 0;
    right = 0;
    wrong = false;
    ended = false;
    room = SEND_ROOM;
    ready = WRITABLE;

    constructor(flow) {
        this.flow = flow;
    }

    serve(to) {
        const end = DOWNLOAD_LENGTH + (this.ended ? 4 : 0);
        const count = Math.min(to.length, end - this.served);
        for (let index = 0; index < count; index++, this.served++) {
            const receipt = this.served - DOWNLOAD_LENGTH;
            to[index] = receipt < 0 ? download(this.served) : this.right >>> (24 - 8 * receipt);
        }
        return count === 0 && this.ended ? -1 : count;
    }

    take(from) {
        const bytes = from.subarray(0, this.room);
        for (const byte of bytes) {
            this.wrong ||= byte !== upload(this.right);
            if (!this.wrong) this.right++;
        }
        this.room -= bytes.length;
        if (this.room === 0) this.ready |= WRITABLE;
        return bytes.length;
    }
}

export class Server {
    #memory;
    #stream = null;
    #echo = null;

    // `memory` gives the memory of the module, once there is one.
    constructor(memory) {
        this.#memory = memory;
    }

    // What the module imports: see nic/src/host.rs.
    imports() {
        return {
            connect: (slot, generation, address, port) => this.#connect([slot, generation], address >>> 0, port),
            connect_result: (_, remote) => {
                this.#setPair(remote, [ADDRESS, PORT]);
                return 1;
            },
            receive: (_, at, length) => this.#stream.serve(this.#bytes(at, length)),
            send: (_, at, length) => this.#stream.take(this.#bytes(at, length)),
            send_room: () => this.#stream.room,
            arm_write: () => {
                if (this.#stream.room < SEND_ROOM) this.#stream.ready |= WRITABLE;
            },
            shutdown_write: () => {
                this.#stream.ended = true;
                this.#stream.ready |= READABLE;
            },
            close: (token) => this.#close(token),
            reset: (token) => this.#close(token),
            open_datagram: (slot, generation) => {
                if (this.#echo) return -1;
                this.#echo = { flow: [slot, generation], ready: 0, datagram: null };
                return DATAGRAMS;
            },
            send_datagram: (_, address, port, at, length) => {
                this.#echo.datagram = { bytes: this.#bytes(at, length).slice(), sender: [address, port] };
                this.#echo.ready = READABLE;
            },
            receive_datagram: (_, at, length, sender) => this.#receiveDatagram(this.#bytes(at, length), sender),
            next_event: (flow) => this.#nextEvent(flow),
        };
    }

    #bytes(at, length) {
        return new Uint8Array(this.#memory().buffer, at, length);
    }

    #setPair(at, pair) {
        new Uint32Array(this.#memory().buffer, at, 2).set(pair);
    }

    #connect(flow, address, port) {
        if (address !== ADDRESS || port !== PORT || this.#stream) return -1;
        this.#stream = new Stream(flow);
        return STREAM;
    }

    #close(token) {
        if (token === STREAM) this.#stream = null;
        else this.#echo = null;
    }

    #receiveDatagram(to, sender) {
        const datagram = this.#echo.datagram;
        if (!datagram || datagram.bytes.length > to.length) return -1;
        this.#echo.datagram = null;
        to.set(datagram.bytes);
        this.#setPair(sender, datagram.sender);
        return datagram.bytes.length;
    }

    #nextEvent(flow) {
        const happened = [this.#stream, this.#echo].find((socket) => socket?.ready);
        if (!happened) return 0;
        const ready = happened.ready;
        happened.ready = 0;
        if (ready & WRITABLE) happened.room = SEND_ROOM;
        this.#setPair(flow, happened.flow);
        return ready;
    }
}
