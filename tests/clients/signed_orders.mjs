// Orders that @polymarket/clob-client-v2 signs, for the tests of the rehearsal (signed_orders.py runs this). The package is
// resolved beside this file, so it is copied to where it is installed.
//
// Usage: signed_orders.mjs WALLETS, with the wallets of the owner as JSON.

import { OrderBuilder, Side, SignatureTypeV2 } from "@polymarket/clob-client-v2";
import { createWalletClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { polygon } from "viem/chains";

const wallets = JSON.parse(process.argv[2]);
// Nothing is sent: the signer needs no chain.
const account = privateKeyToAccount(`0x${"1".padStart(64, "0")}`);
const signer = createWalletClient({ account, chain: polygon, transport: http("http://127.0.0.1:9") });
const RAIN = "81140002";

function row(name, order, orderType, negRisk) {
    const { salt, maker, signer, tokenId, makerAmount, takerAmount, expiration, signatureType, timestamp } = order;
    const { metadata, builder, signature } = order;
    const side = order.side === Side.BUY || order.side === 0 ? "BUY" : "SELL";
    const fields = {
        salt: Number(salt), maker, signer, tokenId, makerAmount, takerAmount, side, expiration: expiration ?? "0",
        signatureType: Number(signatureType), timestamp, metadata, builder, signature,
    };
    return { name: `typescript: ${name}`, order_type: orderType, neg_risk: negRisk, version: 2, amounts: "", order: fields };
}

const rows = [];
const builders = {
    eoa: new OrderBuilder(signer, 137),
    proxy: new OrderBuilder(signer, 137, SignatureTypeV2.POLY_PROXY, wallets.proxy),
    safe: new OrderBuilder(signer, 137, SignatureTypeV2.POLY_GNOSIS_SAFE, wallets.safe),
    deposit: new OrderBuilder(signer, 137, SignatureTypeV2.POLY_1271, wallets.deposit_by_beacon),
};
for (const [wallet, builder] of Object.entries(builders)) {
    for (const negRisk of [false, true]) {
        for (const side of [Side.BUY, Side.SELL]) {
            const order = { tokenID: RAIN, price: 0.41, size: 12.34, side };
            const built = await builder.buildOrder(order, { tickSize: "0.01", negRisk }, 2);
            rows.push(row(`${wallet} ${side} neg_risk=${negRisk}`, built, "GTC", negRisk));
        }
    }
}
const budget = { tokenID: RAIN, price: 0.41, amount: 5, side: Side.BUY };
const market = await builders.eoa.buildMarketOrder(budget, { tickSize: "0.01", negRisk: false }, 2);
rows.push(row("market BUY", market, "FOK", false));
console.log(JSON.stringify(rows));
