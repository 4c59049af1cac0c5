// @polymarket/clob-client against a running server: only host, key and chain are given.
//
// The first call makes the credentials, as in users' scripts. Usage: typescript.mjs FACTS.json

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { AssetType, ClobClient, OrderType, Side } from "@polymarket/clob-client";
import { createWalletClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { polygon } from "viem/chains";

const facts = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { market, others } = facts;
const token = market.yes;
const NOWHERE = `0x${"0".repeat(64)}`;
const GONE = "order can't be found - already canceled or matched";

let cases = 0;

/** One case: both are equal to the last member. */
function same(what, got, expected) {
    cases += 1;
    if (!isDeepStrictEqual(got, expected)) {
        throw new Error(`${what}: got ${JSON.stringify(got)}, expected ${JSON.stringify(expected)}`);
    }
}

/** A decimal text in millionths, so that figures are compared as integers. */
function micros(decimal) {
    const [whole, fraction = ""] = String(decimal).split(".");
    if (!/^\d+$/.test(whole) || !/^\d{0,6}$/.test(fraction)) throw new Error(`${decimal} is not a decimal of the wire`);
    return BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, "0"));
}

/** One case: decimal texts or numbers of one value. */
function equal(what, got, expected) {
    same(what, micros(got).toString(), micros(expected).toString());
}

/** One case: the client's own form of a refusal, with this code, and the sentence in its message. */
function refused(what, answer, status, code, sentence) {
    // Public reads do not identify the client; signed requests are answered in the venue's words.
    same(what, [answer.status, answer.code ?? answer.error], [status, code]);
    if (answer.code) same(`${what}: its words`, answer.error, answer.message);
    if (!answer.message.includes(sentence)) throw new Error(`${what}: ${sentence} is not in ${answer.message}`);
}

function ok(name, ...figures) {
    console.log("ok", name, ...figures);
}

/** Shares (10⁻⁴, rounded down) and dollars (10⁻⁶) of one level, in millionths. */
const shares = (value) => value - (value % 100n);
const dollars = (price, size) => (price * size + 500_000n) / 1_000_000n;

/** What a BUY of so many dollars takes at prices up to `cap`; levels are best first, and lose what is taken. */
function bought(levels, budget, cap) {
    let [left, taken, paid] = [micros(budget), 0n, 0n];
    for (const level of levels.filter((level) => level[0] <= micros(cap))) {
        const [price, size] = level;
        const fits = shares((left * 1_000_000n) / price);
        const part = fits < shares(size) ? fits : shares(size);
        level[1] -= part;
        [left, taken, paid] = [left - dollars(price, part), taken + part, paid + dollars(price, part)];
    }
    return { taken, paid };
}

/** What a SELL of so many shares takes. */
function sold(levels, amount) {
    let [left, taken, paid] = [micros(amount), 0n, 0n];
    for (const [price, size] of levels) {
        const part = left < shares(size) ? left : shares(size);
        [left, taken, paid] = [left - part, taken + part, paid + dollars(price, part)];
    }
    return { taken, paid };
}

const levels = (side) => side.map(([price, size]) => [micros(price), micros(size)]);

const account = privateKeyToAccount(facts.private_key);
const signer = createWalletClient({ account, chain: polygon, transport: http() });
const nobody = new ClobClient(facts.host, facts.chain_id, signer);
let client;

async function firstCall() {
    const creds = await nobody.createOrDeriveApiKey();
    same("the same question has the same answer", await nobody.deriveApiKey(), creds);
    client = new ClobClient(facts.host, facts.chain_id, signer, creds);
    same("the key is listed", await client.getApiKeys(), { apiKeys: [creds.key] });
    same("it may trade", await client.getClosedOnlyMode(), { closed_only: false });
    ok("createOrDeriveApiKey", account.address);
}

async function health() {
    same("getOk", await client.getOk(), "OK");
    const now = await client.getServerTime();
    same("the time is that of this machine", Math.abs(now - Date.now() / 1000) < 60, true);
    ok("getOk, getServerTime");
}

async function books() {
    const pairs = (side) => side.map(({ price, size }) => [price, size]).reverse();
    const book = await client.getOrderBook(token);
    same("market", [book.market, book.asset_id], [market.condition, token]);
    same("bids, best last", pairs(book.bids), market.bids);
    same("asks, best last", pairs(book.asks), market.asks);
    same("tick and neg-risk", [book.tick_size, book.neg_risk], [market.tick, market.neg_risk]);
    if (market.hash_is_ours) {
        const said = book.hash;
        // The client hashes every received field, in the received order.
        same("hash", said, await client.getOrderBookHash(book));
    }
    const both = await client.getOrderBooks([{ token_id: market.no }, { token_id: token }, { token_id: "404" }]);
    const found = both.map((book) => book.asset_id);
    same("books come in the order asked, unknown ones are left out", found, [market.no, token]);
    ok("getOrderBook, getOrderBooks", `${market.bids.length} bids, ${market.asks.length} asks, hash ${book.hash}`);
}

async function prices() {
    const [bid, ask] = [market.bids[0][0], market.asks[0][0]];
    const half = (micros(bid) + micros(ask)) / 2n;
    const spread = micros(ask) - micros(bid);
    const both = [{ token_id: token, side: Side.BUY }, { token_id: token, side: Side.SELL }];
    const one = both.slice(0, 1);
    same("midpoint", micros((await client.getMidpoint(token)).mid), half);
    same("midpoints", micros((await client.getMidpoints(one))[token]), half);
    equal("BUY is the best bid", (await client.getPrice(token, Side.BUY)).price, bid);
    equal("SELL is the best ask", (await client.getPrice(token, Side.SELL)).price, ask);
    same("prices", await client.getPrices(both), { [token]: { BUY: bid, SELL: ask } });
    same("spread", micros((await client.getSpread(token)).spread), spread);
    same("spreads", micros((await client.getSpreads(one))[token]), spread);
    const last = await client.getLastTradePrice(token);
    same("last trade", last, market.last ?? { price: "0.5", side: "" });
    const lasts = market.last ? [{ token_id: token, ...market.last }] : [];
    same("last trades", await client.getLastTradesPrices(one), lasts);
    refused("an unknown token", await client.getPrice("404", Side.BUY), 404, "BOOK_UNAVAILABLE", "");
    ok("prices", `bid ${bid}, ask ${ask}, last ${last.price}`);
}

async function parameters() {
    for (const { yes, tick, neg_risk, base_fee } of [market, ...others]) {
        client.clearTickSizeCache();
        same("tick", await client.getTickSize(yes), tick);
        same("neg-risk", await client.getNegRisk(yes), neg_risk);
        same("fee", await client.getFeeRateBps(yes), base_fee);
    }
    ok("getTickSize, getNegRisk, getFeeRateBps", `${1 + others.length} markets`);
}

async function markets() {
    for (const name of ["getMarkets", "getSimplifiedMarkets"]) {
        const found = [];
        let [pages, cursor] = [0, "MA=="];
        while (cursor !== "LTE=") {
            const page = await client[name](cursor);
            same("count", page.count, page.data.length);
            found.push(...page.data.map((row) => row.condition_id));
            [cursor, pages] = [page.next_cursor, pages + 1];
        }
        same(`${name}: every market once`, [found.length, new Set(found).size], [facts.markets, facts.markets]);
        same("pages of a thousand", pages, Math.ceil(found.length / 1000));
        ok(name, `${found.length} in ${pages} pages`);
    }
    const row = await client.getMarket(market.condition);
    same("tokens", row.tokens.map((one) => one.token_id), [token, market.no]);
    equal("minimum_tick_size", row.minimum_tick_size, market.tick);
    const sampled = (await client.getSamplingMarkets()).data.map((row) => row.condition_id);
    same("a market with two sides is sampled", sampled.includes(market.condition), true);
    ok("getMarket, getSamplingMarkets", `${sampled.length} sampled`);
}

function limit(of, price, size, orderType = OrderType.GTC, expiration = 0, postOnly = false) {
    const order = { tokenID: of.yes, price: Number(price), size: Number(size), side: Side.BUY, expiration };
    return client.createAndPostOrder(order, undefined, orderType, false, postOnly);
}

/** A posted order rests as it was asked for. */
async function resting(what, posted, of, price, size, orderType = "GTC", expiration = "0") {
    same(what, [posted.success, posted.errorMsg, posted.status], [true, "", "live"]);
    const row = await client.getOrder(posted.orderID);
    same("id", row.id, posted.orderID);
    equal("price", row.price, price);
    equal("original_size", row.original_size, size);
    equal("size_matched", row.size_matched, 0);
    const words = [row.status, row.side, row.order_type, row.expiration, row.market, row.asset_id];
    same("row", words, ["LIVE", "BUY", orderType, expiration, of.condition, of.yes]);
    return posted.orderID;
}

async function limits() {
    const bid = market.bids[0][0];
    const mine = [await resting("GTC", await limit(market, bid, "12.34"), market, bid, "12.34")];
    const until = Math.floor(Date.now() / 1000) + 3600;
    const gtd = await limit(market, market.tick, 5, OrderType.GTD, until);
    mine.push(await resting("GTD", gtd, market, market.tick, 5, "GTD", String(until)));
    for (const other of others) {
        const posted = await limit(other, other.tick, "7.5");
        mine.push(await resting("every tick", posted, other, other.tick, "7.5"));
    }
    const crossing = await limit(market, market.asks[0][0], 5, OrderType.GTC, 0, true);
    refused("post-only", crossing, 400, "INVALID_POST_ONLY_ORDER", "invalid post-only order: order crosses book");
    const small = await limit(market, market.tick, 1);
    refused("too small", small, 400, "INVALID_ORDER_MIN_SIZE", "Size (1) lower than the minimum: 5");
    const open = (await client.getOpenOrders()).map((row) => row.id);
    same("all of them are open", open.sort(), [...mine].sort());
    for (const orderID of mine) {
        same("cancel", await client.cancelOrder({ orderID }), { canceled: [orderID], not_canceled: {} });
    }
    const again = await client.cancelOrder({ orderID: mine[0] });
    same("twice", again, { canceled: [], not_canceled: { [mine[0]]: GONE } });
    ok("GTC and GTD rest", `${mine.length} orders, ticks ${[market, ...others].map((one) => one.tick)}`);
}

/** A posted order took so much, in the answer, in its row and in its trade. */
async function taken(what, posted, walk, side) {
    same(what, [posted.success, posted.errorMsg, posted.status], [true, "", "matched"]);
    const [money, amount] =
        side === Side.BUY ? ["makingAmount", "takingAmount"] : ["takingAmount", "makingAmount"];
    same("dollars", micros(posted[money]), walk.paid);
    same("shares", micros(posted[amount]), walk.taken);
    const row = await client.getOrder(posted.orderID);
    same("status", [row.status, row.side], ["MATCHED", side]);
    same("size_matched", micros(row.size_matched), walk.taken);
    const trades = (await client.getTrades({ asset_id: token })).filter((t) => t.taker_order_id === posted.orderID);
    same("one walk is one trade", trades.length, 1);
    const [trade] = trades;
    same("trade size", micros(trade.size), walk.taken);
    // Half up to 10⁻⁶.
    same("trade price", micros(trade.price), (walk.paid * 2_000_000n + walk.taken) / (2n * walk.taken));
    const words = [trade.side, trade.status, trade.trader_side, trade.fee_rate_bps, trade.market];
    same("trade", words, [side, "MATCHED", "TAKER", String(market.fee_bps), market.condition]);
    ok(what, `${posted[amount]} shares for ${posted[money]}, fee ${trade.fee}`);
    return trade;
}

async function atMarket() {
    const [bids, asks] = [levels(market.bids), levels(market.asks)];
    const buy = (amount, price, orderType) => {
        const order = { tokenID: token, amount: Number(amount), side: Side.BUY, price: Number(price), orderType };
        return client.createAndPostMarketOrder(order, undefined, orderType);
    };
    // Price 0: the client reads the worst price from the book.
    const fok = bought(asks, 5, market.asks.at(-1)[0]);
    const first = await taken("FOK BUY 5 USD", await buy(5, 0, OrderType.FOK), fok, Side.BUY);
    const best = market.asks[0][0];
    const fak = bought(asks, facts.fak_dollars, best);
    const posted = await buy(facts.fak_dollars, best, OrderType.FAK);
    const second = await taken(`FAK BUY ${facts.fak_dollars} USD`, posted, fak, Side.BUY);
    if (facts.pencil) {
        same("by pencil: shares", fok.taken, micros(facts.pencil.fok_shares));
        same("by pencil: dollars", fok.paid, micros(facts.pencil.fok_dollars));
        equal("by pencil: fee", first.fee, facts.pencil.fok_fee);
        same("by pencil: the rest of the level", fak.taken, micros(facts.pencil.fak_shares));
        const none = await buy(5, best, OrderType.FAK);
        refused("FAK, none left", none, 400, "NO_EXECUTABLE_DEPTH", "no orders found to match with FAK order.");
        const killed = await buy(90, market.asks[1][0], OrderType.FOK);
        const sentence = "order couldn't be fully filled. FOK orders are fully filled or killed.";
        refused("FOK, too much", killed, 400, "FOK_ORDER_NOT_FILLED_ERROR", sentence);
    }
    const order = { tokenID: token, amount: 5.5, side: Side.SELL, orderType: OrderType.FOK };
    const sell = await client.createAndPostMarketOrder(order);
    const third = await taken("FOK SELL 5.5 shares", sell, sold(bids, "5.5"), Side.SELL);
    const ids = [third, second, first].map((trade) => trade.id);
    same("trades, newest first", (await client.getTrades()).map((trade) => trade.id), ids);
    same("by id", (await client.getTrades({ id: first.id })).map((trade) => trade.id), [first.id]);
    same("by market", (await client.getTrades({ market: market.condition })).length, 3);
    same("of another market", await client.getTrades({ market: NOWHERE }), []);
    const page = await client.getTradesPaginated();
    same("a page of trades", [page.count, page.next_cursor, page.trades.length], [3, "LTE=", 3]);
    ok("getTrades, getTradesPaginated", `${ids.length} trades`);
}

/** Rests `count` small orders, fifteen in a call. */
async function batch(of, count) {
    const ids = [];
    while (ids.length < count) {
        const args = [];
        while (args.length < Math.min(count - ids.length, 15)) {
            const order = { tokenID: of.yes, price: Number(of.tick), size: 5, side: Side.BUY };
            args.push({ order: await client.createOrder(order), orderType: OrderType.GTC });
        }
        const answers = await client.postOrders(args);
        same("batch", answers.map((one) => one.status), args.map(() => "live"));
        ids.push(...answers.map((one) => one.orderID));
    }
    return ids;
}

async function pagesAndCancels() {
    // Another market, or in a recording with a single one its other side.
    const other = others[0] ?? { ...market, yes: market.no };
    const here = await batch(market, facts.resting);
    const there = await batch(other, 6);
    const signed = (size) =>
        client.createOrder({ tokenID: token, price: Number(market.tick), size, side: Side.BUY });
    const mixed = await client.postOrders([
        { order: await signed(5), orderType: OrderType.GTC },
        { order: await signed(1), orderType: OrderType.GTC },
    ]);
    same("one bad entry", mixed.map((one) => one.success), [true, false]);
    same("its code", mixed[1].code, "INVALID_ORDER_MIN_SIZE");
    here.push(mixed[0].orderID);
    const newest = [...here.slice(0, -1), ...there, here.at(-1)].reverse();
    same("every order once, newest first", (await client.getOpenOrders()).map((row) => row.id), newest);
    same("a page", (await client.getOpenOrders({}, true)).length, Math.min(newest.length, 100));
    const theirs = await client.getOpenOrders({ market: other.condition, asset_id: other.yes });
    same("by market", theirs.map((row) => row.id), [...there].reverse());
    same("of an unknown market", await client.getOpenOrders({ market: NOWHERE }), []);
    same("by token", (await client.getOpenOrders({ asset_id: token })).length, here.length);
    same("by id", (await client.getOpenOrders({ id: here[0] })).map((row) => row.id), here.slice(0, 1));
    ok("postOrders, getOpenOrders", `${newest.length} orders, ${Math.ceil(newest.length / 100)} pages`);

    same("scoring", await client.isOrderScoring({ order_id: here[0] }), { scoring: false });
    const two = await client.areOrdersScoring({ orderIds: here.slice(0, 2) });
    same("scoring of two", two, { [here[0]]: false, [here[1]]: false });

    const unknown = here[0].slice(0, -16) + "f".repeat(16);
    const several = await client.cancelOrders([...here.slice(0, 5), unknown]);
    same("several", several, { canceled: here.slice(0, 5), not_canceled: { [unknown]: GONE } });
    const byToken = await client.cancelMarketOrders({ asset_id: other.yes });
    same("by token", [byToken.canceled.sort(), byToken.not_canceled], [there.sort(), {}]);
    const nothing = await client.cancelMarketOrders({ asset_id: "404" });
    same("by an unknown token", nothing, { canceled: [], not_canceled: {} });
    const byMarket = await client.cancelMarketOrders({ market: market.condition });
    same("by market", [byMarket.canceled.sort(), byMarket.not_canceled], [here.slice(5).sort(), {}]);
    const rest = [...(await batch(market, 3)), ...(await batch(other, 3))];
    const everything = await client.cancelAll();
    same("all", [everything.canceled.sort(), everything.not_canceled], [rest.sort(), {}]);
    same("nothing is open", await client.getOpenOrders(), []);
    same("a cancelled one", (await client.getOrder(here[0])).status, "CANCELED");
    ok("cancelOrders, cancelMarketOrders, cancelAll", `5, ${there.length}, ${here.length - 5} and ${rest.length} orders`);
}

async function housekeeping() {
    const allowance = await client.getBalanceAllowance({ asset_type: AssetType.COLLATERAL });
    // The account's initial cash, less its purchases.
    const free = Number(allowance.balance);
    same("balance", [free > 0 && free < 25_000_000_000, allowance.allowance], [true, allowance.balance]);
    const asset = { asset_type: AssetType.CONDITIONAL, token_id: token };
    const updated = await client.updateBalanceAllowance(asset);
    same("no refusal", updated?.error, undefined);
    const trades = (await client.getTrades()).filter((trade) => trade.asset_id === token);
    const signed = trades.map((trade) => (trade.side === Side.BUY ? micros(trade.size) : -micros(trade.size)));
    const held = signed.reduce((sum, size) => sum + size, 0n).toString();
    same("shares", (await client.getBalanceAllowance(asset)).balance, held);
    same("notifications", [await client.getNotifications(), await client.dropNotifications()], [[], "OK"]);
    const first = (await client.postHeartbeat()).heartbeat_id;
    const second = (await client.postHeartbeat(first)).heartbeat_id;
    same("a beat has an id of its own", first !== second, true);
    const old = await client.postHeartbeat(first);
    same("an old beat", [old.status, old.error_msg, old.heartbeat_id], [400, "Invalid Heartbeat ID", second]);
    ok("balance-allowance, notifications, heartbeats");
}

const steps = [
    firstCall, health, books, prices, parameters, markets, limits, atMarket, pagesAndCancels, housekeeping,
];
for (const step of steps) await step();
console.log(`@polymarket/clob-client 5.8.1: ${cases} cases`);
