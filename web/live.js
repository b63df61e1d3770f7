// Live pages of norma serve: curves that grow, states that change. Everything comes from this server, by one stream of events.
'use strict';
(() => {
const kind = document.body.dataset.kind, name = document.body.dataset.name;
if (kind === 'note') return;
const path = before => before + (name ? '/' + name.split('/').map(encodeURIComponent).join('/') : '');
const link = document.getElementById('link'), charts = document.getElementById('charts'), legend = document.getElementById('legend');
const smooth = document.getElementById('smooth');
const MOST = 4000;                      // points of a line; beyond that every other one goes
let runs = new Map(), kinds = {}, drawn = new Map(), mark = '', stream = null, hidden = new Set();

const make = (tag, className, text) => {
	const e = document.createElement(tag);
	if (className) e.className = className;
	if (text !== undefined) e.textContent = text;
	return e;
};
const say = (text, lost) => { link.textContent = text; link.classList.toggle('lost', !!lost); };
const colour = v => getComputedStyle(document.documentElement).getPropertyValue(v).trim();
// Calls it once, this much later, however often it is asked.
const later = (ms, call) => {
	let timer = 0;
	return () => { if (!timer) timer = setTimeout(() => { timer = 0; call(); }, typeof ms === 'function' ? ms() : ms); };
};

// ---- charts

const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2], [12, 4], [6, 2, 2, 2]];

// A line is [x, y, step]: the lines of a chart by its key, "stage|column".
function linesOf(key) {
	const found = [];
	for (const run of runs.values()) {
		run.columns.forEach((column, i) => {
			const line = run.lines[i];
			if (line && line[0].length && run.stage + '|' + column === key) found.push({ run, line });
		});
	}
	return found;
}

// How values are shown: over powers of ten if they span some, and in a unit of their size if that is far from one, which the
// drawing could not do. Both are part of a chart: if they change, it is built anew.
function scaleOf(lines, about) {
	let low = Infinity, high = 0;
	for (const { line } of lines) for (const v of line[1]) {
		if (v === null) continue;
		low = Math.min(low, v);
		high = Math.max(high, Math.abs(v));
	}
	const power = high > 0 ? Math.floor(Math.log10(high)) : 0, far = power < -6 || power > 12;
	return { power: far ? power : 0, wide: about.wide && low > 0 && high > 10 * low && high < 1e9 * low };
}

// An exponential mean whose early values are not drawn towards zero.
function smoothed(y) {
	const keep = smooth ? +smooth.value : 0;
	let sum = 0, weight = 0;
	return keep > 0 && y.length > 20 ? y.map(v => {
		if (v === null) return null;
		sum = keep * sum + (1 - keep) * v;
		weight = keep * weight + (1 - keep);
		return sum / weight;
	}) : y;
}

function tableOf(lines, { factor, power, about }) {
	const show = v => v === null ? null : power ? v / 10 ** power : v * factor;
	const scaled = lines.map(({ line }) => {
		const y = about.noisy ? smoothed(line[1]) : line[1];
		return [line[0], factor === 1 && !power ? y : y.map(show)];
	});
	return scaled.length > 1 ? uPlot.join(scaled) : scaled[0];
}

function optionsFor(chart, width) {
	const axis = {
		stroke: colour('--soft'), grid: { stroke: colour('--faint'), width: 1 }, ticks: { show: false },
		font: '12px system-ui, sans-serif',
	};
	const several = chart.lines.length > 1;
	const digits = (u, v) => {
		if (v === null || v === undefined) return '–';
		return Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(2) : String(+v.toPrecision(4));
	};
	return {
		width, height: Math.max(200, Math.min(280, width * 0.55)), scales: { x: { time: false }, y: { distr: chart.wide ? 3 : 1 } },
		axes: [{ ...axis, space: 70 }, { ...axis, size: 64, values: (u, all) => all.map(v => v === null ? '' : digits(u, v)) }],
		cursor: { y: false, points: { size: 6 } }, legend: { show: !several || chart.lines.length <= 8 },
		series: [{ label: 'step' }, ...chart.lines.map(({ run }) => ({
			label: several ? run.label + ' ' + run.seed : 'value', show: !hidden.has(run.label), value: digits,
			stroke: colour('--c' + run.arm % 8), width: several ? 1.4 : 1.8, dash: several ? dashes[run.arm % 8] : [],
			spanGaps: true, points: { show: false },
		}))],
	};
}

function frame(title) {
	const figure = make('figure', 'chart live'), caption = make('figcaption');
	caption.append(make('b', '', title), ' ', make('span'));
	figure.append(caption);
	figure.setAttribute('role', 'group');
	charts.append(figure);
	return figure;
}

function build(key) {
	const [stage, column] = [key.slice(0, key.indexOf('|')), key.slice(key.indexOf('|') + 1)];
	const about = kinds[column] || { title: column, unit: '', factor: 1, wide: true };
	const lines = linesOf(key), old = drawn.get(key);
	const chart = { key, lines, about, factor: about.factor, ...scaleOf(lines, about) };
	if (old && old.plot) old.plot.destroy();
	chart.figure = old ? old.figure : frame(about.title);
	drawn.set(key, chart);
	const notes = [about.unit, chart.power ? '× 10^' + chart.power : '', stage && stages().size > 1 ? stage : ''];
	chart.figure.querySelector('figcaption span').textContent = notes.filter(Boolean).join('; ');
	try {
		const width = chart.figure.clientWidth || 400;
		if (lines.length) chart.plot = new uPlot(optionsFor(chart, width), tableOf(lines, chart), chart.figure);
	} catch (fault) {
		chart.figure.append(make('p', 'notes', 'These values cannot be drawn.'));
		console.error(fault);
	}
	chart.figure.dataset.points = String(lines.reduce((n, l) => n + l.line[0].length, 0));
}

const stages = () => new Set([...runs.values()].filter(r => r.columns.length).map(r => r.stage));

function drawAll() {
	for (const chart of drawn.values()) {
		if (chart.plot) chart.plot.destroy();
		chart.figure.remove();
	}
	drawn = new Map();
	const order = Object.keys(kinds).sort((a, b) => kinds[a].rank - kinds[b].rank);      // what decides first
	for (const stage of stages())
		for (const column of order) {
			const key = stage + '|' + column;
			if (linesOf(key).length) drawn.set(key, { figure: frame(kinds[column].title) });
		}
	for (const key of [...drawn.keys()]) build(key);        // when all have their place, and so their width
	drawLegend();
	if (!drawn.size && !charts.textContent) charts.append(make('p', 'notes', 'No records yet.'));
	else if (drawn.size) for (const note of charts.querySelectorAll('#charts > p.notes')) note.remove();
}

function drawLegend() {
	legend.textContent = '';
	if (kind !== 'study') return;
	const seen = new Map([...runs.values()].filter(r => r.columns.length).map(r => [r.label, r.arm]));
	for (const [label, arm] of [...seen].sort((a, b) => a[1] - b[1])) {
		const item = make('li', hidden.has(label) ? 'off' : ''), line = make('span', 'line s' + arm % 8);
		item.append(line, make('span', 'plan', label));
		item.setAttribute('role', 'button');
		item.setAttribute('aria-pressed', String(!hidden.has(label)));
		item.tabIndex = 0;
		item.onclick = () => { if (!hidden.delete(label)) hidden.add(label); drawAll(); };
		item.onkeydown = e => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); item.onclick(); } };
		legend.append(item);
	}
}

const dirty = new Set();
function drawDirty() {
	if (document.hidden) return;
	for (const key of dirty) {
		const chart = drawn.get(key), lines = linesOf(key);
		if (!lines.length) continue;
		const scale = chart && scaleOf(lines, chart.about);
		const same = chart && chart.plot && chart.lines.length === lines.length;
		if (!same || scale.wide !== chart.wide || scale.power !== chart.power) {
			build(key);
			continue;
		}
		chart.plot.setData(tableOf(lines, chart));
		chart.figure.dataset.points = String(lines.reduce((n, l) => n + l.line[0].length, 0));
	}
	dirty.clear();
	for (const note of charts.querySelectorAll('#charts > p.notes')) if (drawn.size) note.remove();
}
const redraw = later(250, () => requestAnimationFrame(drawDirty));

const resize = later(150, () => {
	for (const chart of drawn.values())
		if (chart.plot && chart.figure.clientWidth) {
			const { width, height } = optionsFor(chart, chart.figure.clientWidth);
			chart.plot.setSize({ width, height });
		}
});

// ---- news

function addRow(run, row) {
	const step = row[0];
	if (step === null) return;
	run.columns.forEach((column, i) => {
		const line = run.lines[i];
		if (!line || row[i] === null || row[i] === undefined) return;
		const [x, y] = line;
		if (x.length && x[x.length - 1] === step) y[y.length - 1] = row[i];
		else if (!x.length || x[x.length - 1] < step) { x.push(step); y.push(row[i]); }
		if (x.length > MOST) {
			line[0] = x.filter((v, k) => k % 2 === 0 || k === x.length - 1);
			line[1] = y.filter((v, k) => k % 2 === 0 || k === y.length - 1);
		}
		dirty.add(run.stage + '|' + column);
	});
}

function onRows(data) {
	const run = runs.get(data.name);
	if (!run || !run.columns.length || data.rows.some(row => row.length > run.columns.length)) return reload();
	for (const row of data.rows) addRow(run, row);
	redraw();
}

function onState(data) {
	for (const e of document.querySelectorAll('[data-status]')) {
		if (e.dataset.status !== data.name) continue;
		const bar = e.querySelector('progress');
		e.className = 'status ' + data.state;
		e.querySelector('.words').textContent = data.words;
		e.querySelector('.text').textContent = data.text;
		bar.hidden = data.share === null;
		if (data.share !== null) bar.value = data.share;
	}
	for (const e of document.querySelectorAll('[data-headline]'))
		if (e.dataset.headline === data.name) e.textContent = data.headline;
	for (const e of document.querySelectorAll('[data-percent]'))
		if (e.dataset.percent === data.name && data.share !== null) e.textContent = Math.round(100 * data.share) + ' %';
}

// The part of the page that the server draws. Not all viewers at once.
const refresh = later(() => 300 + 1500 * Math.random(), async () => {
	try {
		const answer = await fetch(location.pathname);
		if (!answer.ok) return;
		const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
		for (const id of ['live', 'after']) {
			const fresh = page.getElementById(id), old = document.getElementById(id);
			if (fresh && old) old.replaceChildren(...fresh.childNodes);
		}
	} catch { /* the stream notices that the server is gone */ }
});

async function load() {
	if (kind === 'index') return;
	const answer = await fetch(path('/data'));
	if (!answer.ok) throw new Error('no data');
	const data = await answer.json();
	mark = data.mark;
	kinds = data.kinds;
	runs = new Map(data.runs.map(r => [r.name, r]));
	drawAll();
}

const reload = later(() => 300 + 1200 * Math.random(), () => { refresh(); if (kind !== 'index') start(); });

function listen() {
	if (stream) stream.close();
	stream = new EventSource(path('/events') + (mark ? '?since=' + encodeURIComponent(mark) : ''));
	const on = (what, call) => stream.addEventListener(what, e => {
		if (e.lastEventId) mark = e.lastEventId;
		call(JSON.parse(e.data));
	});
	stream.onopen = () => say('Live: this page follows the files.');
	stream.onerror = () => {
		say('The server does not answer; trying again.', true);
		if (stream.readyState === EventSource.CLOSED) setTimeout(start, 5000);
	};
	on('rows', onRows);
	on('state', onState);
	on('page', refresh);
	on('reload', () => { if (kind === 'index') refresh(); else reload(); });
}

async function start() {
	try {
		await load();
		listen();
	} catch {
		say('The server does not answer; trying again.', true);
		setTimeout(start, 5000);
	}
}

// A page that nobody sees asks for nothing.
document.addEventListener('visibilitychange', () => {
	if (document.hidden) {
		if (stream) stream.close();
		stream = null;
	} else {
		refresh();
		listen();
		redraw();
	}
});
addEventListener('resize', resize);
if (smooth) smooth.oninput = () => { for (const [key, chart] of drawn) if (chart.about && chart.about.noisy) dirty.add(key); redraw(); };
document.documentElement.classList.add('script');
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { if (kind !== 'index') drawAll(); });
say('Connecting.');
start();
})();
