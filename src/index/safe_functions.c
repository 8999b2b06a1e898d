/*-------------------------------------------------------------------------
 *
 * safe_functions.c
 *	  The functions and types that keys may be recomputed with.
 *
 * A key is computed by other sessions than the one that made the entry (key.c),
 * and an entry that no version has is deleted.  So the key has to come out the
 * same in all of them: whatever their settings, in a later release too, for
 * pg_upgrade keeps indexes.  That a function is called immutable does not say so.
 * Hence a list of what has been looked at; all else is not taken.
 *
 * Not on it, of the server's functions that are called immutable:
 *	 - those that look at settings: float8out (extra_float_digits), byteaout,
 *	   quote_ident, convert, all of money; age(timestamptz, timestamptz);
 *	   pg_walfile_name, which looks at the timeline
 *	 - those that take a time zone by its name: abbreviations are up to
 *	   timezone_abbreviations and TimeZone, and the rules of a place come from files
 *	   that are updated while the server runs.  (By an interval, it is
 *	   arithmetic.)
 *	 - what is computed by the C library's mathematics, which need not agree to the
 *	   last bit with that of a standby, and the same of numeric, where the digits
 *	   have changed between releases
 *	 - those whose answer has changed between releases, or follows a table that
 *	   does: parts of an interval, "char" and text, similar_to_escape,
 *	   uuid_extract_timestamp, pg_size_pretty, normalize
 *	 - text search, whose dictionaries have code of their own, XML, SQL/JSON paths
 *	   (which print and compare dates), geometry
 *	 - what nobody indexes: parts of aggregates, support functions
 *
 * Collations are relied on as much as a btree relies on them: where the operating system's
 * change, indexes on text have to be rebuilt, and so have those on lower().
 *
 * OIDs of the server's functions do not change.  A release that lacks one has
 * nothing in its place.  test/sql/safe_functions.sql has the names of those that
 * were looked at and refused, and fails on a release that has others.
 *
 * What works on any type calls functions of the type that it is given, so types
 * have a list, too.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "catalog/pg_type.h"
#include "index/safe_functions.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(inplace_safe_function_name);

typedef struct SafeFunction
{
	Oid			oid;
	const char *name;
} SafeFunction;

#define S(oid, name) {oid, #name}

static const SafeFunction safe_functions[] = {
	/* int2, int4, int8 */
	S(63, int2eq), S(64, int2lt), S(65, int4eq), S(66, int4lt), S(78, char),
	S(141, int4mul), S(144, int4ne), S(145, int2ne), S(146, int2gt),
	S(147, int4gt), S(148, int2le), S(149, int4le), S(150, int4ge),
	S(151, int2ge), S(152, int2mul), S(153, int2div), S(154, int4div),
	S(155, int2mod), S(156, int4mod), S(158, int24eq), S(159, int42eq),
	S(160, int24lt), S(161, int42lt), S(162, int24gt), S(163, int42gt),
	S(164, int24ne), S(165, int42ne), S(166, int24le), S(167, int42le),
	S(168, int24ge), S(169, int42ge), S(170, int24mul), S(171, int42mul),
	S(172, int24div), S(173, int42div), S(176, int2pl), S(177, int4pl),
	S(178, int24pl), S(179, int42pl), S(180, int2mi), S(181, int4mi),
	S(182, int24mi), S(183, int42mi), S(212, int4um), S(213, int2um),
	S(235, float8), S(236, float4), S(313, int4), S(314, int2),
	S(316, float8), S(318, float4), S(350, btint2cmp), S(351, btint4cmp),
	S(462, int8um), S(463, int8pl), S(464, int8mi), S(465, int8mul),
	S(466, int8div), S(467, int8eq), S(468, int8ne), S(469, int8lt),
	S(470, int8gt), S(471, int8le), S(472, int8ge), S(474, int84eq),
	S(475, int84ne), S(476, int84lt), S(477, int84gt), S(478, int84le),
	S(479, int84ge), S(480, int4), S(481, int8), S(482, float8),
	S(652, float4), S(714, int2), S(754, int8), S(768, int4larger),
	S(769, int4smaller), S(770, int2larger), S(771, int2smaller),
	S(837, int82pl), S(838, int82mi), S(839, int82mul), S(840, int82div),
	S(841, int28pl), S(842, btint8cmp), S(852, int48eq), S(853, int48ne),
	S(854, int48lt), S(855, int48gt), S(856, int48le), S(857, int48ge),
	S(940, mod), S(941, mod), S(942, int28mi), S(943, int28mul),
	S(945, int8mod), S(947, mod), S(948, int28div), S(1230, int8abs),
	S(1236, int8larger), S(1237, int8smaller), S(1251, int4abs),
	S(1253, int2abs), S(1274, int84pl), S(1275, int84mi), S(1276, int84mul),
	S(1277, int84div), S(1278, int48pl), S(1279, int48mi), S(1280, int48mul),
	S(1281, int48div), S(1287, oid), S(1376, factorial), S(1396, abs),
	S(1397, abs), S(1398, abs), S(1621, chr), S(1683, bit), S(1740, numeric),
	S(1781, numeric), S(1782, numeric), S(1850, int28eq), S(1851, int28ne),
	S(1852, int28lt), S(1853, int28gt), S(1854, int28le), S(1855, int28ge),
	S(1856, int82eq), S(1857, int82ne), S(1858, int82lt), S(1859, int82gt),
	S(1860, int82le), S(1861, int82ge), S(1892, int2and), S(1893, int2or),
	S(1894, int2xor), S(1895, int2not), S(1896, int2shl), S(1897, int2shr),
	S(1898, int4and), S(1899, int4or), S(1900, int4xor), S(1901, int4not),
	S(1902, int4shl), S(1903, int4shr), S(1904, int8and), S(1905, int8or),
	S(1906, int8xor), S(1907, int8not), S(1908, int8shl), S(1909, int8shr),
	S(1910, int8up), S(1911, int2up), S(1912, int4up), S(2075, bit),
	S(2089, to_hex), S(2090, to_hex), S(2188, btint48cmp),
	S(2189, btint84cmp), S(2190, btint24cmp), S(2191, btint42cmp),
	S(2192, btint28cmp), S(2193, btint82cmp), S(2550, integer_pl_date),
	S(2557, bool), S(2631, int8pl_inet), S(3461, make_timestamp),
	S(3464, make_interval), S(3846, make_date), S(3847, make_time),
	S(5044, gcd), S(5045, gcd), S(5046, lcm), S(5047, lcm), S(6330, to_bin),
	S(6331, to_bin), S(6332, to_oct), S(6333, to_oct), S(6367, bytea),
	S(6368, bytea), S(6369, bytea),

	/* float4, float8 */
	S(202, float4mul), S(203, float4div), S(204, float4pl), S(205, float4mi),
	S(206, float4um), S(207, float4abs), S(209, float4larger),
	S(211, float4smaller), S(216, float8mul), S(217, float8div),
	S(218, float8pl), S(219, float8mi), S(220, float8um), S(221, float8abs),
	S(223, float8larger), S(224, float8smaller), S(228, dround),
	S(229, dtrunc), S(230, dsqrt), S(237, int2), S(238, int2),
	S(279, float48mul), S(280, float48div), S(281, float48pl),
	S(282, float48mi), S(283, float84mul), S(284, float84div),
	S(285, float84pl), S(286, float84mi), S(287, float4eq), S(288, float4ne),
	S(289, float4lt), S(290, float4le), S(291, float4gt), S(292, float4ge),
	S(293, float8eq), S(294, float8ne), S(295, float8lt), S(296, float8le),
	S(297, float8gt), S(298, float8ge), S(299, float48eq), S(300, float48ne),
	S(301, float48lt), S(302, float48le), S(303, float48gt),
	S(304, float48ge), S(305, float84eq), S(306, float84ne),
	S(307, float84lt), S(308, float84le), S(309, float84gt),
	S(310, float84ge), S(311, float8), S(312, float4), S(317, int4),
	S(319, int4), S(354, btfloat4cmp), S(355, btfloat8cmp), S(483, int8),
	S(653, int8), S(1158, to_timestamp), S(1342, round), S(1343, trunc),
	S(1344, sqrt), S(1394, abs), S(1395, abs), S(1624, mul_d_interval),
	S(1742, numeric), S(1743, numeric), S(1913, float4up), S(1914, float8up),
	S(2194, btfloat48cmp), S(2195, btfloat84cmp), S(2308, ceil),
	S(2309, floor), S(2310, sign), S(2320, ceiling),

	/* numeric */
	S(1703, numeric), S(1704, numeric_abs), S(1705, abs), S(1706, sign),
	S(1707, round), S(1708, round), S(1709, trunc), S(1710, trunc),
	S(1711, ceil), S(1712, floor), S(1718, numeric_eq), S(1719, numeric_ne),
	S(1720, numeric_gt), S(1721, numeric_ge), S(1722, numeric_lt),
	S(1723, numeric_le), S(1724, numeric_add), S(1725, numeric_sub),
	S(1726, numeric_mul), S(1727, numeric_div), S(1728, mod),
	S(1729, numeric_mod), S(1744, int4), S(1745, float4), S(1746, float8),
	S(1766, numeric_smaller), S(1767, numeric_larger), S(1769, numeric_cmp),
	S(1771, numeric_uminus), S(1779, int8), S(1783, int2),
	S(1915, numeric_uplus), S(1973, div), S(1980, numeric_div_trunc),
	S(2167, ceiling), S(3281, scale), S(5023, numeric_pl_pg_lsn),
	S(5042, min_scale), S(5043, trim_scale), S(5048, gcd), S(5049, lcm),
	S(6103, pg_lsn),

	/* bool, oid, xid8, "char", pg_lsn, uuid */
	S(56, boollt), S(57, boolgt), S(60, booleq), S(61, chareq), S(70, charne),
	S(72, charle), S(73, chargt), S(74, charge), S(77, int4), S(84, boolne),
	S(184, oideq), S(185, oidne), S(356, btoidcmp), S(358, btcharcmp),
	S(716, oidlt), S(717, oidle), S(1246, charlt), S(1288, int8),
	S(1638, oidgt), S(1639, oidge), S(1691, boolle), S(1692, boolge),
	S(1693, btboolcmp), S(1965, oidlarger), S(1966, oidsmaller),
	S(2515, booland_statefunc), S(2558, int4), S(2954, uuid_lt),
	S(2955, uuid_le), S(2956, uuid_eq), S(2957, uuid_ge), S(2958, uuid_gt),
	S(2959, uuid_ne), S(2960, uuid_cmp), S(2971, text),
	S(3165, pg_wal_lsn_diff), S(3231, pg_lsn_lt), S(3232, pg_lsn_le),
	S(3233, pg_lsn_eq), S(3234, pg_lsn_ge), S(3235, pg_lsn_gt),
	S(3236, pg_lsn_ne), S(3237, pg_lsn_mi), S(3251, pg_lsn_cmp),
	S(4187, pg_lsn_larger), S(4188, pg_lsn_smaller), S(5022, pg_lsn_pli),
	S(5024, pg_lsn_mii), S(5034, xid8lt), S(5035, xid8gt), S(5036, xid8le),
	S(5037, xid8ge), S(5084, xid8eq), S(5085, xid8ne), S(5096, xid8cmp),
	S(5097, xid8_larger), S(5098, xid8_smaller),
	S(6343, uuid_extract_version),

	/* text, varchar, bpchar, name */
	S(62, nameeq), S(67, texteq), S(79, nameregexeq), S(157, textne),
	S(240, nameeqtext), S(241, namelttext), S(242, nameletext),
	S(243, namegetext), S(244, namegttext), S(245, namenetext),
	S(246, btnametextcmp), S(247, texteqname), S(248, textltname),
	S(249, textlename), S(250, textgename), S(251, textgtname),
	S(252, textnename), S(253, bttextnamecmp), S(266, nameconcatoid),
	S(359, btnamecmp), S(360, bttextcmp), S(376, string_to_array),
	S(394, string_to_array), S(401, text), S(406, text), S(407, name),
	S(408, bpchar), S(409, name), S(458, text_larger), S(459, text_smaller),
	S(655, namelt), S(656, namele), S(657, namegt), S(658, namege),
	S(659, namene), S(668, bpchar), S(669, varchar), S(740, text_lt),
	S(741, text_le), S(742, text_gt), S(743, text_ge), S(849, position),
	S(850, textlike), S(851, textnlike), S(858, namelike), S(859, namenlike),
	S(868, strpos), S(870, lower), S(871, upper), S(872, initcap),
	S(873, lpad), S(874, rpad), S(875, ltrim), S(876, rtrim), S(877, substr),
	S(878, translate), S(879, lpad), S(880, rpad), S(881, ltrim),
	S(882, rtrim), S(883, substr), S(884, btrim), S(885, btrim),
	S(936, substring), S(937, substring), S(1048, bpchareq),
	S(1049, bpcharlt), S(1050, bpcharle), S(1051, bpchargt),
	S(1052, bpcharge), S(1053, bpcharne), S(1063, bpchar_larger),
	S(1064, bpchar_smaller), S(1078, bpcharcmp), S(1238, texticregexeq),
	S(1239, texticregexne), S(1240, nameicregexeq), S(1241, nameicregexne),
	S(1252, nameregexne), S(1254, textregexeq), S(1256, textregexne),
	S(1257, textlen), S(1258, textcat), S(1273, date_part),
	S(1283, quote_literal), S(1289, quote_nullable), S(1317, length),
	S(1318, length), S(1367, character_length), S(1369, character_length),
	S(1372, char_length), S(1374, octet_length), S(1375, octet_length),
	S(1381, char_length), S(1384, date_part), S(1385, date_part),
	S(1400, name), S(1401, varchar), S(1404, overlay), S(1405, overlay),
	S(1569, like), S(1570, notlike), S(1571, like), S(1572, notlike),
	S(1620, ascii), S(1622, repeat), S(1631, bpcharlike),
	S(1632, bpcharnlike), S(1633, texticlike), S(1634, texticnlike),
	S(1635, nameiclike), S(1636, nameicnlike), S(1637, like_escape),
	S(1656, bpcharicregexeq), S(1657, bpcharicregexne),
	S(1658, bpcharregexeq), S(1659, bpcharregexne), S(1660, bpchariclike),
	S(1661, bpcharicnlike), S(1811, bit_length), S(1947, decode),
	S(2020, date_trunc), S(2021, date_part), S(2073, substring),
	S(2087, replace), S(2088, split_part), S(2160, text_pattern_lt),
	S(2161, text_pattern_le), S(2163, text_pattern_ge),
	S(2164, text_pattern_gt), S(2166, bttext_pattern_cmp),
	S(2174, bpchar_pattern_lt), S(2175, bpchar_pattern_le),
	S(2177, bpchar_pattern_ge), S(2178, bpchar_pattern_gt),
	S(2180, btbpchar_pattern_cmp), S(2284, regexp_replace),
	S(2285, regexp_replace), S(2311, md5), S(2767, regexp_split_to_array),
	S(2768, regexp_split_to_array), S(3060, left), S(3061, right),
	S(3062, reverse), S(3396, regexp_match), S(3397, regexp_match),
	S(3696, starts_with), S(6198, unistr), S(6199, extract), S(6200, extract),
	S(6201, extract), S(6202, extract), S(6251, regexp_replace),
	S(6252, regexp_replace), S(6253, regexp_replace), S(6254, regexp_count),
	S(6255, regexp_count), S(6256, regexp_count), S(6257, regexp_instr),
	S(6258, regexp_instr), S(6259, regexp_instr), S(6260, regexp_instr),
	S(6261, regexp_instr), S(6262, regexp_instr), S(6263, regexp_like),
	S(6264, regexp_like), S(6265, regexp_substr), S(6266, regexp_substr),
	S(6267, regexp_substr), S(6268, regexp_substr), S(6269, regexp_substr),
	S(6412, casefold),

	/* bytea, bit, varbit */
	S(720, octet_length), S(721, get_byte), S(722, set_byte), S(723, get_bit),
	S(724, set_bit), S(749, overlay), S(752, overlay), S(1581, biteq),
	S(1582, bitne), S(1592, bitge), S(1593, bitgt), S(1594, bitle),
	S(1595, bitlt), S(1596, bitcmp), S(1666, varbiteq), S(1667, varbitne),
	S(1668, varbitge), S(1669, varbitgt), S(1670, varbitle),
	S(1671, varbitlt), S(1672, varbitcmp), S(1673, bitand), S(1674, bitor),
	S(1675, bitxor), S(1676, bitnot), S(1677, bitshiftleft),
	S(1678, bitshiftright), S(1679, bitcat), S(1680, substring),
	S(1681, length), S(1682, octet_length), S(1684, int4), S(1685, bit),
	S(1687, varbit), S(1698, position), S(1699, substring),
	S(1810, bit_length), S(1812, bit_length), S(1946, encode),
	S(1948, byteaeq), S(1949, bytealt), S(1950, byteale), S(1951, byteagt),
	S(1952, byteage), S(1953, byteane), S(1954, byteacmp), S(2005, bytealike),
	S(2006, byteanlike), S(2007, like), S(2008, notlike),
	S(2009, like_escape), S(2010, length), S(2011, byteacat),
	S(2012, substring), S(2013, substring), S(2014, position), S(2015, btrim),
	S(2076, int8), S(2085, substr), S(2086, substr), S(2321, md5),
	S(3030, overlay), S(3031, overlay), S(3032, get_bit), S(3033, set_bit),
	S(3419, sha224), S(3420, sha256), S(3421, sha384), S(3422, sha512),
	S(6162, bit_count), S(6163, bit_count), S(6195, ltrim), S(6196, rtrim),
	S(6364, crc32), S(6365, crc32c), S(6370, int2), S(6371, int4),
	S(6372, int8), S(6382, reverse), S(6393, bytea_larger),
	S(6394, bytea_smaller),

	/* date, time, timetz, timestamp, timestamptz, interval */
	S(1086, date_eq), S(1087, date_lt), S(1088, date_le), S(1089, date_gt),
	S(1090, date_ge), S(1091, date_ne), S(1092, date_cmp),
	S(1138, date_larger), S(1139, date_smaller), S(1140, date_mi),
	S(1141, date_pli), S(1142, date_mii), S(1272, datetime_pl),
	S(1297, datetimetz_pl), S(1359, timestamptz), S(1373, isfinite),
	S(2024, timestamp), S(2025, timestamp), S(2071, date_pl_interval),
	S(2072, date_mi_interval), S(2338, date_lt_timestamp),
	S(2339, date_le_timestamp), S(2340, date_eq_timestamp),
	S(2341, date_gt_timestamp), S(2342, date_ge_timestamp),
	S(2343, date_ne_timestamp), S(2344, date_cmp_timestamp), S(1102, time_lt),
	S(1103, time_le), S(1104, time_gt), S(1105, time_ge), S(1106, time_ne),
	S(1107, time_cmp), S(1145, time_eq), S(1296, timedate_pl),
	S(1308, overlaps), S(1309, overlaps), S(1310, overlaps),
	S(1311, overlaps), S(1370, interval), S(1377, time_larger),
	S(1378, time_smaller), S(1690, time_mi_time), S(1747, time_pl_interval),
	S(1748, time_mi_interval), S(1968, time), S(1316, time),
	S(1961, timestamp), S(2029, date), S(2031, timestamp_mi),
	S(2032, timestamp_pl_interval), S(2033, timestamp_mi_interval),
	S(2035, timestamp_smaller), S(2036, timestamp_larger), S(2041, overlaps),
	S(2042, overlaps), S(2043, overlaps), S(2044, overlaps),
	S(2045, timestamp_cmp), S(2048, isfinite), S(2052, timestamp_eq),
	S(2053, timestamp_ne), S(2054, timestamp_lt), S(2055, timestamp_le),
	S(2056, timestamp_ge), S(2057, timestamp_gt), S(2058, age),
	S(2364, timestamp_lt_date), S(2365, timestamp_le_date),
	S(2366, timestamp_eq_date), S(2367, timestamp_gt_date),
	S(2368, timestamp_ge_date), S(2369, timestamp_ne_date),
	S(2370, timestamp_cmp_date), S(1152, timestamptz_eq),
	S(1153, timestamptz_ne), S(1154, timestamptz_lt), S(1155, timestamptz_le),
	S(1156, timestamptz_ge), S(1157, timestamptz_gt), S(1188, timestamptz_mi),
	S(1195, timestamptz_smaller), S(1196, timestamptz_larger),
	S(1304, overlaps), S(1314, timestamptz_cmp), S(1389, isfinite),
	S(1967, timestamptz), S(1026, timezone), S(1162, interval_eq),
	S(1163, interval_ne), S(1164, interval_lt), S(1165, interval_le),
	S(1166, interval_ge), S(1167, interval_gt), S(1168, interval_um),
	S(1169, interval_pl), S(1170, interval_mi), S(1175, justify_hours),
	S(1197, interval_smaller), S(1198, interval_larger), S(1200, interval),
	S(1295, justify_days), S(1315, interval_cmp), S(1326, interval_div),
	S(1390, isfinite), S(1419, time), S(1618, interval_mul),
	S(1848, interval_pl_time), S(2038, timezone), S(2070, timezone),
	S(2546, interval_pl_date), S(2547, interval_pl_timetz),
	S(2548, interval_pl_timestamp), S(2711, justify_interval),
	S(6177, date_bin), S(6178, date_bin), S(1271, overlaps),
	S(1298, timetzdate_pl), S(1352, timetz_eq), S(1353, timetz_ne),
	S(1354, timetz_lt), S(1355, timetz_le), S(1356, timetz_ge),
	S(1357, timetz_gt), S(1358, timetz_cmp), S(1379, timetz_larger),
	S(1380, timetz_smaller), S(1749, timetz_pl_interval),
	S(1750, timetz_mi_interval), S(1969, timetz), S(2046, time),

	/* inet, cidr, macaddr, macaddr8 */
	S(598, abbrev), S(599, abbrev), S(605, set_masklen), S(635, set_masklen),
	S(683, network), S(696, netmask), S(697, masklen), S(698, broadcast),
	S(699, host), S(711, family), S(730, text), S(753, trunc),
	S(830, macaddr_eq), S(831, macaddr_lt), S(832, macaddr_le),
	S(833, macaddr_gt), S(834, macaddr_ge), S(835, macaddr_ne),
	S(836, macaddr_cmp), S(920, network_eq), S(921, network_lt),
	S(922, network_le), S(923, network_gt), S(924, network_ge),
	S(925, network_ne), S(926, network_cmp), S(927, network_sub),
	S(928, network_subeq), S(929, network_sup), S(930, network_supeq),
	S(1362, hostmask), S(1715, cidr), S(2627, inetnot), S(2628, inetand),
	S(2629, inetor), S(2630, inetpl), S(2632, inetmi_int8), S(2633, inetmi),
	S(3144, macaddr_not), S(3145, macaddr_and), S(3146, macaddr_or),
	S(3551, network_overlap), S(3562, network_larger),
	S(3563, network_smaller), S(4063, inet_merge), S(4071, inet_same_family),
	S(4112, trunc), S(4113, macaddr8_eq), S(4114, macaddr8_lt),
	S(4115, macaddr8_le), S(4116, macaddr8_gt), S(4117, macaddr8_ge),
	S(4118, macaddr8_ne), S(4119, macaddr8_cmp), S(4120, macaddr8_not),
	S(4121, macaddr8_and), S(4122, macaddr8_or), S(4123, macaddr8),
	S(4124, macaddr), S(4125, macaddr8_set7bit),

	/* json and jsonb */
	S(2580, float8), S(3202, json_object), S(3203, json_object),
	S(3207, jsonb_array_length), S(3210, jsonb_typeof),
	S(3214, jsonb_object_field_text), S(3215, jsonb_array_element),
	S(3216, jsonb_array_element_text), S(3217, jsonb_extract_path),
	S(3261, json_strip_nulls), S(3262, jsonb_strip_nulls),
	S(3263, jsonb_object), S(3264, jsonb_object), S(3301, jsonb_concat),
	S(3302, jsonb_delete), S(3303, jsonb_delete), S(3304, jsonb_delete_path),
	S(3305, jsonb_set), S(3306, jsonb_pretty), S(3343, jsonb_delete),
	S(3449, numeric), S(3450, int2), S(3451, int4), S(3452, int8),
	S(3453, float4), S(3478, jsonb_object_field), S(3556, bool),
	S(3579, jsonb_insert), S(3940, jsonb_extract_path_text),
	S(3947, json_object_field), S(3948, json_object_field_text),
	S(3949, json_array_element), S(3950, json_array_element_text),
	S(3951, json_extract_path), S(3953, json_extract_path_text),
	S(3956, json_array_length), S(3968, json_typeof), S(4038, jsonb_ne),
	S(4039, jsonb_lt), S(4040, jsonb_gt), S(4041, jsonb_le),
	S(4042, jsonb_ge), S(4043, jsonb_eq), S(4044, jsonb_cmp),
	S(4046, jsonb_contains), S(4047, jsonb_exists), S(4048, jsonb_exists_any),
	S(4049, jsonb_exists_all), S(4050, jsonb_contained),
	S(5054, jsonb_set_lax),

	/* arrays */
	S(378, array_append), S(379, array_prepend), S(382, btarraycmp),
	S(383, array_cat), S(390, array_ne), S(391, array_lt), S(392, array_gt),
	S(393, array_le), S(396, array_ge), S(515, array_larger),
	S(516, array_smaller), S(744, array_eq), S(747, array_dims),
	S(748, array_ndims), S(1193, array_fill), S(1286, array_fill),
	S(2091, array_lower), S(2092, array_upper), S(2176, array_length),
	S(2747, arrayoverlap), S(2748, arraycontains), S(2749, arraycontained),
	S(3167, array_remove), S(3168, array_replace), S(3179, cardinality),
	S(3218, width_bucket), S(3277, array_position), S(3278, array_position),
	S(3279, array_positions), S(6172, trim_array), S(6381, array_reverse),
	S(6388, array_sort), S(6389, array_sort), S(6390, array_sort),

	/* ranges */
	S(3840, int4range), S(3841, int4range), S(3844, numrange),
	S(3845, numrange), S(3848, lower), S(3849, upper), S(3850, isempty),
	S(3851, lower_inc), S(3852, upper_inc), S(3853, lower_inf),
	S(3854, upper_inf), S(3855, range_eq), S(3856, range_ne),
	S(3857, range_overlaps), S(3858, range_contains_elem),
	S(3859, range_contains), S(3860, elem_contained_by_range),
	S(3861, range_contained_by), S(3862, range_adjacent),
	S(3863, range_before), S(3864, range_after), S(3865, range_overleft),
	S(3866, range_overright), S(3867, range_union), S(3868, range_intersect),
	S(3869, range_minus), S(3870, range_cmp), S(3871, range_lt),
	S(3872, range_le), S(3873, range_ge), S(3874, range_gt), S(3933, tsrange),
	S(3934, tsrange), S(3937, tstzrange), S(3938, tstzrange),
	S(3941, daterange), S(3942, daterange), S(3945, int8range),
	S(3946, int8range), S(4057, range_merge),

	/* multiranges */
	S(4228, range_merge), S(4235, lower), S(4236, upper), S(4237, isempty),
	S(4238, lower_inc), S(4239, upper_inc), S(4240, lower_inf),
	S(4241, upper_inf), S(4244, multirange_eq), S(4245, multirange_ne),
	S(4246, range_overlaps_multirange), S(4247, multirange_overlaps_range),
	S(4248, multirange_overlaps_multirange),
	S(4249, multirange_contains_elem), S(4250, multirange_contains_range),
	S(4251, multirange_contains_multirange),
	S(4252, elem_contained_by_multirange),
	S(4253, range_contained_by_multirange),
	S(4254, multirange_contained_by_multirange),
	S(4255, range_adjacent_multirange),
	S(4256, multirange_adjacent_multirange),
	S(4257, multirange_adjacent_range), S(4258, range_before_multirange),
	S(4259, multirange_before_range), S(4260, multirange_before_multirange),
	S(4261, range_after_multirange), S(4262, multirange_after_range),
	S(4263, multirange_after_multirange), S(4264, range_overleft_multirange),
	S(4265, multirange_overleft_range),
	S(4266, multirange_overleft_multirange),
	S(4267, range_overright_multirange), S(4268, multirange_overright_range),
	S(4269, multirange_overright_multirange), S(4270, multirange_union),
	S(4271, multirange_minus), S(4272, multirange_intersect),
	S(4273, multirange_cmp), S(4274, multirange_lt), S(4275, multirange_le),
	S(4276, multirange_ge), S(4277, multirange_gt), S(4280, int4multirange),
	S(4281, int4multirange), S(4282, int4multirange), S(4283, nummultirange),
	S(4284, nummultirange), S(4285, nummultirange), S(4286, tsmultirange),
	S(4287, tsmultirange), S(4288, tsmultirange), S(4289, tstzmultirange),
	S(4290, tstzmultirange), S(4291, tstzmultirange), S(4292, datemultirange),
	S(4293, datemultirange), S(4294, datemultirange), S(4295, int8multirange),
	S(4296, int8multirange), S(4297, int8multirange), S(4298, multirange),
	S(4541, range_contains_multirange),
	S(4542, multirange_contained_by_range),

	/* enums */
	S(3508, enum_eq), S(3509, enum_ne), S(3510, enum_lt), S(3511, enum_gt),
	S(3512, enum_le), S(3513, enum_ge), S(3514, enum_cmp),
	S(3524, enum_smaller), S(3525, enum_larger),

	/* hash functions */
	S(328, hashmacaddr8), S(399, hashmacaddr), S(400, hashtext),
	S(422, hashinet), S(425, hashint4extended), S(432, hash_numeric),
	S(441, hashint2extended), S(442, hashint8extended),
	S(443, hashfloat4extended), S(444, hashfloat8extended),
	S(445, hashoidextended), S(446, hashcharextended),
	S(447, hashnameextended), S(448, hashtextextended), S(449, hashint2),
	S(450, hashint4), S(451, hashfloat4), S(452, hashfloat8), S(453, hashoid),
	S(454, hashchar), S(455, hashname), S(626, hash_array),
	S(778, hashmacaddrextended), S(779, hashinetextended),
	S(780, hash_numeric_extended), S(781, hashmacaddr8extended),
	S(782, hash_array_extended), S(949, hashint8), S(972, hashbpcharextended),
	S(1080, hashbpchar), S(1688, time_hash), S(1696, timetz_hash),
	S(1697, interval_hash), S(2039, timestamp_hash), S(2963, uuid_hash),
	S(3252, pg_lsn_hash), S(3409, time_hash_extended),
	S(3410, timetz_hash_extended), S(3411, timestamp_hash_extended),
	S(3412, uuid_hash_extended), S(3413, pg_lsn_hash_extended),
	S(3414, hashenumextended), S(3416, jsonb_hash_extended),
	S(3417, hash_range_extended), S(3418, interval_hash_extended),
	S(3515, hashenum), S(3902, hash_range), S(4045, jsonb_hash),
	S(4278, hash_multirange), S(4279, hash_multirange_extended),
	S(6413, hashbytea), S(6414, hashbyteaextended), S(6415, hashdate),
	S(6416, hashdateextended), S(6417, hashbool), S(6418, hashboolextended),
	S(6421, hashxid8), S(6422, hashxid8extended), S(6425, timestamptz_hash),
	S(6426, timestamptz_hash_extended),

	/* any type */
	S(438, num_nulls), S(440, num_nonnulls),

	/* input and output, for casts by way of text */
	S(1242, boolin), S(1243, boolout), S(1244, byteain), S(38, int2in),
	S(39, int2out), S(42, int4in), S(43, int4out), S(460, int8in),
	S(461, int8out), S(46, textin), S(47, textout), S(34, namein),
	S(35, nameout), S(1798, oidin), S(1799, oidout), S(1046, varcharin),
	S(1047, varcharout), S(1044, bpcharin), S(1045, bpcharout),
	S(1701, numeric_in), S(1702, numeric_out), S(200, float4in),
	S(214, float8in), S(2952, uuid_in), S(2953, uuid_out), S(910, inet_in),
	S(911, inet_out), S(1267, cidr_in), S(1427, cidr_out), S(436, macaddr_in),
	S(437, macaddr_out), S(4110, macaddr8_in), S(4111, macaddr8_out),
	S(1564, bit_in), S(1565, bit_out), S(1579, varbit_in),
	S(1580, varbit_out), S(321, json_in), S(322, json_out), S(3806, jsonb_in),
	S(3804, jsonb_out), S(3229, pg_lsn_in), S(3230, pg_lsn_out),
	S(5070, xid8in), S(5081, xid8out),
};

#undef S

/* OIDs of what initdb makes are below */
static uint64 safe_oids[FirstGenbkiObjectId / 64 + 1];

static bool
is_in_set(Oid function)
{
	return (safe_oids[function / 64] & (UINT64CONST(1) << (function % 64))) != 0;
}

bool
inplace_function_is_safe(Oid function)
{
	if (function >= FirstGenbkiObjectId)
		return false;
	if (!is_in_set(safe_functions[0].oid))
		for (int i = 0; i < lengthof(safe_functions); i++)
		{
			Oid			oid = safe_functions[i].oid;

			safe_oids[oid / 64] |= UINT64CONST(1) << (oid % 64);
		}
	return is_in_set(function);
}

/* for the tests: the name that the list has for a function, or null */
Datum
inplace_safe_function_name(PG_FUNCTION_ARGS)
{
	for (int i = 0; i < lengthof(safe_functions); i++)
		if (safe_functions[i].oid == PG_GETARG_OID(0))
			PG_RETURN_TEXT_P(cstring_to_text(safe_functions[i].name));
	PG_RETURN_NULL();
}

static bool
type_is_listed(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case CHAROID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case XID8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
		case NAMEOID:
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case BYTEAOID:
		case BITOID:
		case VARBITOID:
		case DATEOID:
		case TIMEOID:
		case TIMETZOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case INTERVALOID:
		case UUIDOID:
		case INETOID:
		case CIDROID:
		case MACADDROID:
		case MACADDR8OID:
		case JSONOID:
		case JSONBOID:
		case PG_LSNOID:
		case INT4RANGEOID:
		case INT8RANGEOID:
		case NUMRANGEOID:
		case DATERANGEOID:
		case TSRANGEOID:
		case TSTZRANGEOID:
		case INT4MULTIRANGEOID:
		case INT8MULTIRANGEOID:
		case NUMMULTIRANGEOID:
		case DATEMULTIRANGEOID:
		case TSMULTIRANGEOID:
		case TSTZMULTIRANGEOID:
			return true;
		default:
			return false;
	}
}

/* one of these, an enum, a domain over one, or an array */
static bool
type_is_safe(Oid type)
{
	Oid			element;

	type = getBaseType(type);
	while (OidIsValid(element = get_element_type(type)))
		type = getBaseType(element);
	return type_is_listed(type) || get_typtype(type) == TYPTYPE_ENUM;
}

static bool
is_unsafe(Oid function, void *context)
{
	return !inplace_function_is_safe(function);
}

/*
 * Has the expression, as it was written, anything that is not on the lists?
 * (What a node computes by a type's own support functions goes by its type.)
 */
static bool
has_unsafe(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_CaseWhen:
			return expression_tree_walker(node, has_unsafe, context);
		case T_Var:
			/* whole rows and system columns */
			if (((Var *) node)->varattno <= 0)
				return true;
			break;
		case T_SubscriptingRef:
			if (!type_is_safe(((SubscriptingRef *) node)->refcontainertype))
				return true;
			break;
		case T_Const:
		case T_FuncExpr:
		case T_NamedArgExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_RowCompareExpr:
		case T_BoolExpr:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_RelabelType:
		case T_CollateExpr:
		case T_CoerceViaIO:
		case T_ArrayCoerceExpr:
		case T_ArrayExpr:
			break;
		default:
			return true;
	}
	return !type_is_safe(exprType(node)) ||
		check_functions_in_node(node, is_unsafe, NULL) ||
		expression_tree_walker(node, has_unsafe, context);
}

bool
inplace_expression_is_safe(Node *node)
{
	return !has_unsafe(node, NULL);
}
