// The streams with the package `ws`, as the examples of the venue's TypeScript client use it.
//
// The driver moves the market when this program prints `MOVE n`. Usage: node streams.mjs FACTS.json

import { readFileSync } from "node:fs";
import WebSocket from "ws";

const FACTS = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { host, key, uuid, market, name, level } = FACTS;
const sockets = host.replace(/^http/, "ws");
// Far longer than any step here: only a broken server reaches it.
const PATIENCE_MS = 60_000;
let cases = 0;

function same(what, got, expected) {
  cases += 1;
  const [shown, wanted] = [JSON.stringify(got), JSON.stringify(expected)];
  if (shown !== wanted) throw new Error(`${what}: got ${shown}, expected ${wanted}`);
}

function equal(what, got, expected) {
  same(what, Number(got), Number(expected));
}

function ok(...said) {
  console.log("ok", ...said);
}

async function rest(method, path, body) {
  const headers = { "X-API-Key": key, "Content-Type": "application/json" };
  const answer = await fetch(host + path, { method, headers, body: body && JSON.stringify(body) });
  return await answer.json();
}

/** A socket with what it heard, in order. */
class Stream {
  static async open(path, headers = {}) {
    const stream = new Stream();
    stream.heard = [];
    stream.socket = new WebSocket(sockets + path, { headers });
    stream.socket.on("message", (message) => {
      stream.heard.push(message.toString());
      stream.wake?.();
    });
    stream.closed = new Promise((done) => stream.socket.on("close", (code) => done(code)));
    await new Promise((open, fail) => stream.socket.on("open", open).on("error", fail));
    return stream;
  }

  send(frame) {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  async text() {
    const until = Date.now() + PATIENCE_MS;
    while (this.heard.length === 0) {
      if (Date.now() > until) throw new Error("no frame in time");
      await new Promise((woken) => {
        this.wake = woken;
        setTimeout(woken, 1_000);
      });
    }
    return this.heard.shift();
  }

  async hear() {
    return JSON.parse(await this.text());
  }

  async until(ready) {
    for (;;) {
      const frame = await this.hear();
      if (ready(frame)) return frame;
    }
  }

  async end() {
    this.socket.close();
    return await this.closed;
  }
}

/** The books as the frames tell them: token → side → price → size, and the hash. */
function take(books, frame) {
  for (const event of Array.isArray(frame) ? frame : [frame]) {
    if (event.event_type === "book") {
      const levels = (rows) => new Map(rows.map((row) => [Number(row.price), row.size]));
      books[event.asset_id] = { BUY: levels(event.bids), SELL: levels(event.asks), hash: event.hash };
    } else if (event.event_type === "price_change") {
      for (const change of event.price_changes) {
        const book = books[change.asset_id];
        if (Number(change.size) === 0) book[change.side].delete(Number(change.price));
        else book[change.side].set(Number(change.price), change.size);
        book.hash = change.hash;
      }
    }
  }
}

function shown(book) {
  const rows = (side, order) => [...side].sort((a, b) => order * (a[0] - b[0])).map(([price, size]) => [price, Number(size)]);
  return { bids: rows(book.BUY, 1), asks: rows(book.SELL, -1), hash: book.hash };
}

async function restShows(token) {
  const book = await rest("GET", `/v1/book?token_id=${token}`);
  const rows = (side) => side.map((row) => [Number(row.price), Number(row.size)]);
  return { bids: rows(book.bids), asks: rows(book.asks), hash: book.hash };
}

async function marketChannel() {
  const tokens = [market.yes, market.no];
  const opened = [];
  for (const mount of ["/v1/ws/market", "/ws/market"]) {
    const stream = await Stream.open(mount);
    stream.send({ type: "market", assets_ids: tokens, initial_dump: true });
    const books = {};
    take(books, await stream.hear());
    for (const token of tokens) same(`${mount}: book`, shown(books[token]), await restShows(token));
    stream.send("PING");
    same(`${mount}: PING`, await stream.text(), "PONG");
    opened.push([mount, stream, books]);
  }
  console.log("MOVE level");
  for (const [mount, stream, books] of opened) {
    while (books[market.yes].BUY.get(Number(level[0])) !== level[1]) take(books, await stream.hear());
    same(`${mount}: the folded book`, shown(books[market.yes]), await restShows(market.yes));
    same(`${mount}: close`, await stream.end(), 1000);
  }
  ok("market");
}

async function pricesChannel() {
  const stream = await Stream.open("/v1/ws/prices", { "X-API-Key": key });
  same("connected", (await stream.hear()).type, "connected");
  stream.send({ action: "subscribe", markets: [market.condition] });
  same("subscribed", (await stream.until((frame) => frame.type === "subscribed")).markets, [market.condition]);
  const price = await stream.until((frame) => frame.type === "price");
  same("price", price.outcomes.map((outcome) => outcome.token_id), [market.yes, market.no]);
  same("close", await stream.end(), 1000);
  ok("prices");
}

async function orderEntryAndFills() {
  const user = await Stream.open("/v1/ws/user");
  user.send({ type: "user", markets: [market.condition], auth: { apiKey: uuid, secret: "", passphrase: "" } });
  user.send("PING");
  same("user: PING", await user.text(), "PONG");
  const { token } = await rest("POST", "/v1/keys/ws-token", {});
  const executions = await Stream.open(`/v1/ws/executions?token=${token}`);
  same("executions", (await executions.hear()).type, "connected");

  const trade = await Stream.open("/v1/ws/trade", { "X-API-Key": key });
  const ask = async (id, op, params) => {
    trade.send({ id, op, params });
    return await trade.until((frame) => frame.id === id);
  };
  const order = { token_id: market.yes, side: "BUY", order_type: "limit", price: "0.37", quantity: "20" };
  const placed = await ask(1, "order.place", { ...order, client_order_id: name });
  same("placed", [placed.status, placed.result.status], [200, "PENDING"]);
  const other = await ask(2, "order.place", { ...order, price: "0.10" });
  const cancelled = await ask(3, "order.cancel", { order_id: other.result.order_id });
  same("cancelled", cancelled.result.status, "CANCELLED");
  const refused = await ask(4, "order.place", { ...order, price: "0.375" });
  same("refused", [refused.status, refused.error.error], [400, "INVALID_ORDER_MIN_TICK_SIZE"]);

  console.log("MOVE fill");
  const fill = await executions.until((frame) => frame.type === "fill");
  same("fill", [fill.order_id, fill.status], [placed.result.order_id, "FILLED"]);
  equal("shares", fill.quantity, "20");
  const event = await user.until((frame) => frame.event_type === "trade");
  same("trade", [event.asset_id, event.owner, event.status], [market.yes, uuid, "MATCHED"]);
  const status = await ask(5, "order.status", { order_id: fill.order_id });
  same("REST has the fill", status.result.fills.map((row) => row.trade_id), [fill.trade_id]);
  for (const stream of [user, executions, trade]) same("close", await stream.end(), 1000);
  ok("a resting order was filled: executions, user, REST agree");
}

await marketChannel();
await pricesChannel();
await orderEntryAndFills();
console.log(`streams.mjs: ${cases} cases`);
