-- COPY in and out, by single and by many rows.
CREATE TABLE cp (id int, t text, n numeric) USING inplace;
COPY cp FROM stdin;
1	one	1.5
2	\N	\N
3		-0.001
\.
COPY cp FROM stdin WITH (FORMAT csv, HEADER, FORCE_NULL (t));
id,t,n
4,"with ""quotes"", and commas",4
5,"",5
6,"two
lines",6
\.
COPY (SELECT * FROM cp ORDER BY id) TO stdout;
COPY (SELECT * FROM cp ORDER BY id) TO stdout WITH (FORMAT csv, HEADER);
COPY cp (n, id) FROM stdin WHERE id <> 8;
7	7
8	8
9	9
\.
SELECT * FROM cp WHERE id > 6 ORDER BY id;
-- an error in the middle leaves nothing
COPY cp FROM stdin;
10	ten	10
11	eleven	eleven
\.
SELECT count(*) FROM cp;
-- in a transaction that created or truncated the table, with FREEZE
BEGIN;
TRUNCATE cp;
COPY cp FROM stdin WITH (FREEZE);
1	frozen	1
2	frozen	2
\.
SELECT * FROM cp ORDER BY id;
COMMIT;
SELECT * FROM cp ORDER BY id;
SELECT sum(pages) AS pages, sum(all_visible) AS all_visible, sum(all_frozen) AS all_frozen FROM inplace.visibility_summary('cp');
UPDATE cp SET t = 'not any more' WHERE id = 1;
DELETE FROM cp WHERE id = 2;
SELECT * FROM cp ORDER BY id;
COPY cp FROM stdin WITH (FREEZE);
1	x	1
\.
BEGIN;
TRUNCATE cp;
COPY cp FROM stdin WITH (FREEZE);
1	frozen	1
\.
ROLLBACK;
SELECT * FROM cp ORDER BY id;

-- Large: many pages, indexes, constraints, triggers, defaults
CREATE TABLE cp_big (id int PRIMARY KEY, t text, d text DEFAULT 'dflt', CHECK (id > 0)) USING inplace;
CREATE INDEX ON cp_big (t);
COPY cp_big (id, t) FROM stdin;
1	text 1
2	text 2
3	text 3
4	text 4
5	text 5
6	text 6
7	text 7
8	text 8
9	text 9
10	text 10
11	text 11
12	text 12
13	text 13
14	text 14
15	text 15
16	text 16
17	text 17
18	text 18
19	text 19
20	text 20
21	text 21
22	text 22
23	text 23
24	text 24
25	text 25
26	text 26
27	text 27
28	text 28
29	text 29
30	text 30
31	text 31
32	text 32
33	text 33
34	text 34
35	text 35
36	text 36
37	text 37
38	text 38
39	text 39
40	text 40
41	text 41
42	text 42
43	text 43
44	text 44
45	text 45
46	text 46
47	text 47
48	text 48
49	text 49
50	text 50
51	text 51
52	text 52
53	text 53
54	text 54
55	text 55
56	text 56
57	text 57
58	text 58
59	text 59
60	text 60
61	text 61
62	text 62
63	text 63
64	text 64
65	text 65
66	text 66
67	text 67
68	text 68
69	text 69
70	text 70
71	text 71
72	text 72
73	text 73
74	text 74
75	text 75
76	text 76
77	text 77
78	text 78
79	text 79
80	text 80
81	text 81
82	text 82
83	text 83
84	text 84
85	text 85
86	text 86
87	text 87
88	text 88
89	text 89
90	text 90
91	text 91
92	text 92
93	text 93
94	text 94
95	text 95
96	text 96
97	text 97
98	text 98
99	text 99
100	text 100
101	text 101
102	text 102
103	text 103
104	text 104
105	text 105
106	text 106
107	text 107
108	text 108
109	text 109
110	text 110
111	text 111
112	text 112
113	text 113
114	text 114
115	text 115
116	text 116
117	text 117
118	text 118
119	text 119
120	text 120
121	text 121
122	text 122
123	text 123
124	text 124
125	text 125
126	text 126
127	text 127
128	text 128
129	text 129
130	text 130
131	text 131
132	text 132
133	text 133
134	text 134
135	text 135
136	text 136
137	text 137
138	text 138
139	text 139
140	text 140
141	text 141
142	text 142
143	text 143
144	text 144
145	text 145
146	text 146
147	text 147
148	text 148
149	text 149
150	text 150
151	text 151
152	text 152
153	text 153
154	text 154
155	text 155
156	text 156
157	text 157
158	text 158
159	text 159
160	text 160
161	text 161
162	text 162
163	text 163
164	text 164
165	text 165
166	text 166
167	text 167
168	text 168
169	text 169
170	text 170
171	text 171
172	text 172
173	text 173
174	text 174
175	text 175
176	text 176
177	text 177
178	text 178
179	text 179
180	text 180
181	text 181
182	text 182
183	text 183
184	text 184
185	text 185
186	text 186
187	text 187
188	text 188
189	text 189
190	text 190
191	text 191
192	text 192
193	text 193
194	text 194
195	text 195
196	text 196
197	text 197
198	text 198
199	text 199
200	text 200
201	text 201
202	text 202
203	text 203
204	text 204
205	text 205
206	text 206
207	text 207
208	text 208
209	text 209
210	text 210
211	text 211
212	text 212
213	text 213
214	text 214
215	text 215
216	text 216
217	text 217
218	text 218
219	text 219
220	text 220
221	text 221
222	text 222
223	text 223
224	text 224
225	text 225
226	text 226
227	text 227
228	text 228
229	text 229
230	text 230
231	text 231
232	text 232
233	text 233
234	text 234
235	text 235
236	text 236
237	text 237
238	text 238
239	text 239
240	text 240
241	text 241
242	text 242
243	text 243
244	text 244
245	text 245
246	text 246
247	text 247
248	text 248
249	text 249
250	text 250
251	text 251
252	text 252
253	text 253
254	text 254
255	text 255
256	text 256
257	text 257
258	text 258
259	text 259
260	text 260
261	text 261
262	text 262
263	text 263
264	text 264
265	text 265
266	text 266
267	text 267
268	text 268
269	text 269
270	text 270
271	text 271
272	text 272
273	text 273
274	text 274
275	text 275
276	text 276
277	text 277
278	text 278
279	text 279
280	text 280
281	text 281
282	text 282
283	text 283
284	text 284
285	text 285
286	text 286
287	text 287
288	text 288
289	text 289
290	text 290
291	text 291
292	text 292
293	text 293
294	text 294
295	text 295
296	text 296
297	text 297
298	text 298
299	text 299
300	text 300
\.
SELECT count(*), sum(id), min(t), max(t), min(d), max(d) FROM cp_big;
SELECT * FROM cp_big WHERE t = 'text 250';
COPY cp_big (id, t) FROM stdin;
400	dup follows
17	dup
\.
COPY cp_big (id, t) FROM stdin;
0	check
\.
SELECT count(*) FROM cp_big;

CREATE FUNCTION cp_trg() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.t := upper(NEW.t); IF NEW.id = 502 THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE TRIGGER cp_trg BEFORE INSERT ON cp_big FOR EACH ROW EXECUTE FUNCTION cp_trg();
CREATE FUNCTION cp_after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE 'after insert %', NEW; RETURN NULL; END $$;
CREATE TRIGGER cp_after AFTER INSERT ON cp_big FOR EACH ROW EXECUTE FUNCTION cp_after();
CREATE FUNCTION cp_stmt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE 'statement: %', (SELECT string_agg(n::text, ' ' ORDER BY id) FROM n); RETURN NULL; END $$;
CREATE TRIGGER cp_stmt AFTER INSERT ON cp_big REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION cp_stmt();
COPY cp_big (id, t) FROM stdin;
501	a
502	b
503	c
\.
SELECT * FROM cp_big WHERE id > 500 ORDER BY id;

-- to partitions
CREATE TABLE cp_part (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE cp_part1 PARTITION OF cp_part FOR VALUES FROM (0) TO (10) USING inplace;
CREATE TABLE cp_part2 PARTITION OF cp_part FOR VALUES FROM (10) TO (20) USING heap;
CREATE TABLE cp_part3 PARTITION OF cp_part DEFAULT USING inplace;
COPY cp_part FROM stdin;
1	a
11	b
21	c
2	d
12	e
22	f
\.
SELECT tableoid::regclass, * FROM cp_part ORDER BY k;

-- binary, and by way of a file of the server
SELECT format('COPY cp_big TO %L WITH (FORMAT binary)', current_setting('data_directory') || '/inplace_copy.bin') AS out,
       format('COPY cp_bin FROM %L WITH (FORMAT binary)', current_setting('data_directory') || '/inplace_copy.bin') AS inp \gset
CREATE TABLE cp_bin (LIKE cp_big) USING inplace;
:out;
:inp;
:inp;
SELECT count(*), count(DISTINCT id) FROM cp_bin;
SELECT count(*) FROM (TABLE cp_big EXCEPT TABLE cp_bin) s;

-- rows of very different widths fill pages
CREATE TABLE cp_w (id int, t text) USING inplace;
SELECT format('COPY (SELECT g, repeat(''x'', (g * 37) %% 2000) FROM generate_series(1, 5000) g) TO %L', current_setting('data_directory') || '/inplace_copy.txt') AS out,
       format('COPY cp_w FROM %L', current_setting('data_directory') || '/inplace_copy.txt') AS inp \gset
:out;
:inp;
SELECT count(*), sum(length(t)) = (SELECT sum((g * 37) % 2000) FROM generate_series(1, 5000) g) FROM cp_w;

SELECT * FROM check_all();
