import { unitCurrency } from './amounts.ts'
import { PriceList, type PriceRow } from './prices.ts'

/**
 * The price of an SMS in units, and the prefixes with that price. The figures are the rate multipliers of GOV.UK Notify for
 * international SMS since April 2025: notifications_utils/international_billing_rates.yml in github.com/alphagov/notifications-utils,
 * commit cf424c70472e of 22 July 2026. That file has one row for +44; Notify counts 2 for Guernsey, Jersey and the Isle of Man, and
 * 1 for the rest. Their prefixes here are those of libphonenumber. 1658, a second area code of Jamaica, has the price of 1876.
 * Satellite and other global numbers (+870, +881, +882, +883) have no row. They have the dearest price, as all dear kinds.
 */
const prefixesByUnits: readonly (readonly [units: number, prefixes: string])[] = [
  [1, `1 239 264 299 389 423 44 48 506 66 686 82 853 86 90`],
  [
    2,
    `1684 1721 246 298 30 33 34 350 351 352 353 354 356 357 358 36 370 371 372 373 385 39 40 41 420
      421 43 441481 441534 441624 4474576 447509 447524 447624 4477003 4477007 4477008 447781 447797
      447829 447839 4479111 4479117 447937 45 46 47 503 53 55 56 57 58 598 61 64 65 672 673 677
      680 681 691 692 81 852 886 91`,
  ],
  [
    3,
    `1242 1809 1829 1849 244 254 262 266 267 27 291 297 31 32 355 376 387 500 52 54 595 687 689 971
      973`,
  ],
  [4, `220 226 230 248 253 258 359 377 382 386 505 507 508 590 591 593 594 596 676 678 682 84 968 995`],
  [5, `1268 1284 232 237 238 243 252 263 374 380 383 49 501 502 504 51 63 670 679 685 966`],
  [6, `1264 1345 1473 1649 1664 1869 212 213 222 224 231 235 240 375 592 597 674 675 960 967 972 974 98`],
  [
    7,
    `1246 1441 1658 1758 1767 1784 1868 1876 20 221 223 228 229 236 242 255 256 268 269 381 599 60
      965 976 993`,
  ],
  [8, `211 227 233 234 241 245 249 250 257 260 265 378 509 683 690 855 856 962 977 996`],
  [9, `216 218 251 880 95 961 963 964 970 994`],
  [10, `225 7 93 975 992`],
  [12, `261 62 92 94 998`],
]

/** The built-in price list, in units. */
export const relativePrices = new PriceList(
  prefixesByUnits.flatMap(([units, prefixes]) =>
    prefixes.split(/\s+/).map((prefix) => ({
      prefix,
      provider: null,
      priceMicros: units * 1_000_000,
      currency: unitCurrency,
    })),
  ),
)

/** The prices in force: the imported ones, or the built-in ones as long as none are imported (D42). */
export function priceListOf(imported: readonly PriceRow[]): PriceList {
  return imported.length > 0 ? new PriceList(imported) : relativePrices
}
