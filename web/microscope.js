// The norm microscope of a report: statistics of every norm, by depth at one step and over time. The vertical axis spans all
// steps, so that a line moves and not its frame. Colours, dashes and markers are those of the page's legend.
(() => {
const root = document.getElementById('microscope');
const data = JSON.parse(root.querySelector('script').textContent);   // sites, stats: [key, title], arms: steps and values
const sites = data.sites;
const [pick, slide] = root.querySelectorAll('select,input');
const chosenStep = root.querySelector('output');
const figures = [...root.querySelectorAll('figure')];                // one for each group of tokens: special, others
const maps = root.querySelector('.maps');
const steps = [...new Set(data.arms.flatMap(arm => arm.steps))].sort((a, b) => a - b);

const WIDTH = 480, LEFT = 52, RIGHT = 452, TOP = 30, BOTTOM = 250;   // in units of the view box
const SHADES = 12;

let stat = 0;        // index of the chosen statistic
let range;           // its axis, over all arms, groups and steps

/* The live page's content security policy forbids style attributes, but not the object's own style. */
function svgElement(name, attributes, text) {
	const e = document.createElementNS('http://www.w3.org/2000/svg', name);
	for (const key in attributes) {
		if (key === 'style') e.style.cssText = attributes[key];
		else e.setAttribute(key, attributes[key]);
	}
	if (text !== undefined) e.textContent = text;
	return e;
}

function htmlElement(name, className, text) {
	const e = document.createElement(name);
	if (className) e.className = className;
	if (text !== undefined) e.textContent = text;
	return e;
}

function makeTip() {
	const tip = htmlElement('div', 'tip');
	tip.hidden = true;
	return tip;
}

function digits(v) {
	if (v === 0) return '0';
	return Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(1) : String(+v.toPrecision(3));
}

/* The arm's last record up to a step; -1: none. */
const recordAt = (arm, step) => arm.steps.reduce((found, s, i) => (s <= step ? i : found), -1);
const legendOf = arm => root.querySelector('.legend li[data-arm="' + arm.arm + '"]');
const nameOf = arm => legendOf(arm).querySelector('.plan').textContent;
const isOff = arm => legendOf(arm).classList.contains('off');
const displayOf = arm => (isOff(arm) ? 'display:none' : '');
const colourOf = arm => 's' + arm.arm % 8;
const blockOf = site => (/\.(\d+)\./.exec(site) || [])[1];

/* The values by site of one record; empty: not measured. */
function rowAt(arm, group, step) {
	const k = recordAt(arm, step);
	return k < 0 || !arm.v[stat][group] ? [] : arm.v[stat][group][k];
}

/* The first site of a block is labelled with its number, other sites of the block not at all, the rest with their names. */
function labelsOf(list) {
	return list.map((site, i) => {
		const block = blockOf(site);
		if (block === undefined) return site;
		return i && blockOf(list[i - 1]) === block ? '' : block;
	});
}

/* ---- axes ---- */

/* The range of the statistic over some groups; logarithmic if it is positive and wide. part maps it to 0 .. 1. */
function rangeOf(groups) {
	let low = Infinity, high = -Infinity;
	for (const arm of data.arms) {
		for (const g of groups) {
			for (const row of arm.v[stat][g] || []) {
				for (const v of row) {
					if (v === null) continue;
					if (v < low) low = v;
					if (v > high) high = v;
				}
			}
		}
	}
	const log = low > 0 && high / low > 20;
	if (!log && high - low < 1e-9 * Math.abs(high) + 1e-30) {
		const d = Math.abs(high) / 2 || 1;
		low -= d;
		high += d;
	}
	const scale = v => (log ? Math.log(v) : v);
	return { low, high, log, part: v => (scale(v) - scale(low)) / (scale(high) - scale(low)) };
}

function ticks() {
	const { low, high, log } = range, list = [];
	if (log) {
		const factors = Math.log10(high / low) > 3 ? [1] : [1, 2, 5];
		for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
			for (const k of factors) list.push(k * 10 ** e);
		}
		return list.filter(v => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
	}
	const raw = (high - low) / 5, power = 10 ** Math.floor(Math.log10(raw));
	const d = [1, 2, 5, 10].map(k => k * power).find(v => v >= raw);
	for (let k = Math.ceil(low / d); k * d <= high + 1e-9 * d; k++) list.push(k * d);
	return list;
}

const siteX = i => LEFT + (i + .5) * (RIGHT - LEFT) / sites.length;
const valueY = v => BOTTOM - range.part(v) * (BOTTOM - TOP);

/* The horizontal axis with as many labels of sites as fit. */
function addSiteAxis(svg, y) {
	let free = -1e9;
	labelsOf(sites).forEach((text, i) => {
		const half = text.length * 7.5 / 2;
		if (!text || siteX(i) - half < free || siteX(i) + half > WIDTH - 2) return;
		free = siteX(i) + half + 6;
		svg.append(svgElement('text', { class: 'tick', 'text-anchor': 'middle', x: siteX(i), y: y + 17 }, text));
	});
	svg.append(svgElement('path', { class: 'axis', d: 'M' + LEFT + ',' + y + 'H' + RIGHT }));
}

function addValueAxis(svg) {
	for (const v of ticks()) {
		svg.append(svgElement('path', { class: 'grid', d: 'M' + LEFT + ',' + valueY(v) + 'H' + RIGHT }),
			svgElement('text', { class: 'tick', 'text-anchor': 'end', x: LEFT - 7, y: valueY(v) + 4 }, digits(v)));
	}
	svg.append(svgElement('text', { class: 'unit', x: 2, y: 13 }, data.stats[stat][1]));
}

/* ---- the profile: the statistic by depth at one step ---- */

/* Whether a value was drawn. */
function addArm(svg, arm, row) {
	const legend = legendOf(arm);
	const box = svgElement('g', { class: colourOf(arm), 'data-arm': arm.arm, style: displayOf(arm) });
	const marker = legend.querySelector('.m').getAttribute('d');
	const dash = legend.querySelector('.l').getAttribute('stroke-dasharray') || 'none';
	let line = '';
	row.forEach((v, i) => {
		if (v !== null) line += (line ? 'L' : 'M') + siteX(i).toFixed(1) + ',' + valueY(v).toFixed(1);
	});
	box.append(svgElement('path', { class: 'l bold', 'stroke-dasharray': dash, d: line }));
	row.forEach((v, i) => {
		if (v === null) return;
		box.append(svgElement('path', { class: 'm', transform: 'translate(' + siteX(i) + ',' + valueY(v) + ')', d: marker }));
	});
	svg.append(box);
	return line !== '';
}

function fillProfileTip(tip, group, step, i) {
	tip.textContent = sites[i];
	for (const arm of data.arms) {
		const row = rowAt(arm, group, step), v = !row.length || isOff(arm) ? null : row[i];
		if (v === null) continue;
		const line = htmlElement('div');
		line.append(htmlElement('b', colourOf(arm), nameOf(arm)), ' ' + digits(v));
		tip.append(line);
	}
}

function drawProfile(figure, group, step) {
	const title = data.stats[stat][1], tip = figure.querySelector('.tip');
	const svg = svgElement('svg', { class: 'chart', viewBox: '0 0 ' + WIDTH + ' 290', role: 'img', 'aria-label': title });
	addValueAxis(svg);
	svg.append(svgElement('text', { class: 'unit', 'text-anchor': 'end', x: RIGHT, y: 286 },
		'site, by depth; numbers are blocks'));
	addSiteAxis(svg, BOTTOM);
	let any = false;
	for (const arm of data.arms) any = addArm(svg, arm, rowAt(arm, group, step)) || any;
	if (!any) {
		svg.append(svgElement('text', { 'text-anchor': 'middle', x: (LEFT + RIGHT) / 2, y: (TOP + BOTTOM) / 2 + 10 },
			'not measured for these tokens'));
	}
	figure.querySelector('svg').replaceWith(svg);
	figure.querySelector('figcaption span').textContent = 'step ' + step;

	svg.onpointerleave = () => { tip.hidden = true; };
	svg.onpointermove = e => {
		const box = svg.getBoundingClientRect(), frame = figure.getBoundingClientRect(), x = e.clientX - frame.left;
		const i = Math.floor(((e.clientX - box.left) * WIDTH / box.width - LEFT) / (RIGHT - LEFT) * sites.length);
		tip.hidden = i < 0 || i >= sites.length;
		if (tip.hidden) return;
		fillProfileTip(tip, group, step, i);
		const right = x + 12 + tip.offsetWidth > frame.width;
		tip.style.left = Math.max(0, right ? x - 12 - tip.offsetWidth : x + 12) + 'px';
		tip.style.top = '3.5rem';
	};
}

/* ---- the maps: one arm and group over time, in shades of the arm's colour ---- */

/* One path for each shade. Cells are w x h; rows are records, `shown` the sites that have values. */
function shadePaths(rows, shown, own, w, h) {
	const paths = Array(SHADES).fill('');
	rows.forEach((row, k) => shown.forEach((site, i) => {
		const v = row[site];
		if (v === null) return;
		paths[Math.min(SHADES - 1, Math.floor(own.part(v) * SHADES))] +=
			'M' + (LEFT + k * w).toFixed(1) + ',' + (TOP + i * h).toFixed(1) +
			'h' + w.toFixed(2) + 'v' + h.toFixed(2) + 'h' + (-w).toFixed(2) + 'z';
	}));
	return paths;
}

function addMapLabels(svg, shown, h) {
	let free = -1;
	labelsOf(shown.map(i => sites[i])).forEach((text, i) => {
		const y = TOP + (i + .5) * h + 4;
		if (!text || y < free) return;
		free = y + 14;
		svg.append(svgElement('text', { class: 'tick', 'text-anchor': 'end', x: LEFT - 5, y },
			text.length > 6 ? text.slice(0, 5) + '…' : text));
	});
}

function makeMap(arm, group, rows, own, step) {
	const shown = sites.map((site, i) => i).filter(i => rows.some(row => row[i] !== null));
	const height = Math.max(90, shown.length * 9), w = (RIGHT - LEFT) / arm.steps.length, h = height / shown.length;
	const svg = svgElement('svg', { class: 'chart ' + colourOf(arm), viewBox: '0 0 ' + WIDTH + ' ' + (TOP + height + 24),
		role: 'img', 'aria-label': data.stats[stat][1] + ' over time' });
	shadePaths(rows, shown, own, w, h).forEach((d, q) => svg.append(svgElement('path', { d, 'shape-rendering': 'crispEdges',
		style: 'fill:var(--c);stroke:none', 'fill-opacity': (.06 + .94 * q / (SHADES - 1)).toFixed(2) })));
	addMapLabels(svg, shown, h);

	const now = recordAt(arm, step), last = arm.steps.length - 1, below = TOP + height + 17;
	svg.append(svgElement('rect', { class: 'grid', x: LEFT, y: TOP, width: RIGHT - LEFT, height }),
		svgElement('text', { class: 'tick', x: LEFT, y: below }, 'step ' + arm.steps[0]));
	if (last > 0) svg.append(svgElement('text', { class: 'tick', 'text-anchor': 'end', x: RIGHT, y: below }, arm.steps[last]));
	if (now >= 0) svg.append(svgElement('path', { class: 'cross', d: 'M' + (LEFT + (now + .5) * w) + ',' + TOP + 'v' + height }));

	const figure = htmlElement('figure'), caption = htmlElement('figcaption'), tip = makeTip();
	caption.append(htmlElement('b', '', nameOf(arm) + ': ' + (group ? 'all other tokens' : 'special tokens')), htmlElement('br'),
		htmlElement('span', '', 'sites from top to bottom; a row that changes its shade changes over time'));
	svg.onpointerleave = () => { tip.hidden = true; };
	svg.onpointermove = e => {
		const box = svg.getBoundingClientRect(), zoom = WIDTH / box.width;
		const k = Math.floor(((e.clientX - box.left) * zoom - LEFT) / w);
		const site = shown[Math.floor(((e.clientY - box.top) * zoom - TOP) / h)];
		const v = rows[k] && rows[k][site];
		tip.hidden = v === null || v === undefined;
		if (tip.hidden) return;
		tip.textContent = sites[site] + ', step ' + arm.steps[k] + ': ' + digits(v);
		const frame = figure.getBoundingClientRect(), x = e.clientX - frame.left;
		tip.style.left = Math.max(0, Math.min(x + 12, frame.width - tip.offsetWidth)) + 'px';
		tip.style.top = (e.clientY - frame.top + 16) + 'px';
	};
	figure.dataset.arm = arm.arm;
	figure.style.cssText = displayOf(arm);
	figure.append(caption, svg, tip);
	return figure;
}

/* ---- the page ---- */

function shadesText(own) {
	return own.map((r, group) => {
		if (r.low > r.high) return '';
		return (group ? 'Other' : 'Special') + ' tokens: the palest shade is ' + digits(r.low) + ', the fullest ' +
			digits(r.high) + (r.log ? ', by their logarithm. ' : '. ');
	}).join('');
}

function draw() {
	stat = +pick.value;
	range = rangeOf([0, 1]);
	const own = [rangeOf([0]), rangeOf([1])], step = steps[+slide.value];
	chosenStep.textContent = 'step ' + step;
	figures.forEach((figure, group) => drawProfile(figure, group, step));
	maps.textContent = '';
	for (const arm of data.arms) {
		arm.v[stat].forEach((rows, group) => {
			if (rows) maps.append(makeMap(arm, group, rows, own[group], step));
		});
	}
	root.querySelector('.shades').textContent = shadesText(own);
}

data.stats.forEach((s, i) => {
	const option = htmlElement('option', '', s[1]);
	option.value = i;
	pick.append(option);
});
slide.max = steps.length - 1;
slide.value = steps.length - 1;
for (const figure of figures) figure.append(makeTip());
pick.oninput = slide.oninput = draw;
for (const e of root.querySelectorAll('[hidden]:not(.tip)')) e.hidden = false;
draw();
})();
