// Pages of norma report in Chromium: no message on the console, no request but the page itself, every chart drawn, texts apart, zoom, log
// axis and legend work; light, dark, as wide as a phone, without scripts and on paper.
// Usage: node report.mjs MODULES CHROMIUM SHOTS PAGE.html...  SHOTS "": no pictures. A page whose name begins with "faulty" must fail.
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { statSync } from 'node:fs';

const [modules, executablePath, shots, ...pages] = process.argv.slice(2);
const { chromium } = createRequire(join(resolve(modules), 'x.js'))('playwright-core');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });

// Runs inside of the page: what is wrong with what can be seen.
const look = () => {
	const bad = [], root = document.documentElement, box = e => e.getBoundingClientRect();
	for (const i of document.images) if (!(i.naturalWidth > 0)) bad.push('a picture is not decoded');
	if (root.scrollWidth > root.clientWidth) bad.push('scrolls sideways: ' + root.scrollWidth + ' of ' + root.clientWidth);
	for (const f of document.querySelectorAll('figure')) {
		const caption = f.querySelector('figcaption span');
		if (!caption || caption.textContent.length < 5) bad.push('no caption: ' + f.textContent.slice(0, 40));
	}
	for (const s of document.querySelectorAll('svg.chart')) {
		if (!s.querySelector('path')) bad.push('nothing is drawn in ' + s.getAttribute('aria-label'));
		const texts = [...s.querySelectorAll('text')].filter(t => box(t).width > 0);
		texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
			const p = box(a), q = box(b), x = Math.min(p.right, q.right) - Math.max(p.left, q.left), y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
			if (x > 1 && y > 3) bad.push('texts overlap: ' + a.textContent + ' / ' + b.textContent);
		}));
		for (const t of texts) if (box(t).left < -1 || box(t).right > innerWidth + 1) bad.push('a text leaves the page: ' + t.textContent);
	}
	for (const s of document.querySelectorAll('svg.structure')) {
		const name = s.getAttribute('aria-label'), frame = box(s), style = e => getComputedStyle(e);
		if (!s.querySelector('.bond').getAttribute('d') && !s.querySelector('text')) bad.push('nothing is drawn of ' + name);
		if (style(s.querySelector('.bond')).stroke !== style(document.body).color) bad.push('bonds are not in ink');
		for (const t of s.querySelectorAll('text')) {
			const b = box(t);
			if (b.left < frame.left - 4 || b.right > frame.right + 4 || b.top < frame.top - 4 || b.bottom > frame.bottom + 4)
				bad.push('a letter leaves the formula: ' + t.textContent + ' of ' + name);
		}
	}
	const svgs = [...document.querySelectorAll('svg')].filter(s => !s.closest('.live'));
	for (const s of svgs) if (!(box(s).width > 0 && box(s).height > 0)) bad.push('a drawing has no box');
	for (const c of document.querySelectorAll('.plot canvas')) if (window.inked(c) < 300) bad.push('a canvas is blank: ' + window.inked(c));
	const curves = document.querySelectorAll('figure.curve').length, plots = document.querySelectorAll('.plot canvas').length;
	const beyond = [...document.querySelectorAll('figure.curve:not(.live)')].filter(f => !/^odd/.test(f.textContent)).length;
	if (!plots || beyond || curves - plots > 1) bad.push(plots + ' plots for ' + curves + ' curves');
	return [...new Set(bad)];
};

// Pixels of a canvas that are not empty, and those that are coloured: grey ones are axes.
const helpers = () => {
	window.pixels = c => {                          // of a copy, which Chromium does not warn about
		const copy = Object.assign(document.createElement('canvas'), { width: c.width, height: c.height });
		const to = copy.getContext('2d', { willReadFrequently: true });
		to.drawImage(c, 0, 0);
		return to.getImageData(0, 0, c.width, c.height).data;
	};
	window.inked = c => { let n = 0; const d = window.pixels(c); for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; };
	window.coloured = c => {
		let n = 0;
		const d = window.pixels(c);
		for (let i = 0; i < d.length; i += 4) n += d[i + 3] > 0 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 40;
		return n;
	};
};

// Hovering, zooming, the log axis and the legend, with the pointer as a reader has it.
const use = async page => {
	const bad = [], first = page.locator('figure.curve').first(), over = first.locator('.u-over');
	await over.scrollIntoViewIfNeeded();
	const b = await over.boundingBox(), ink = () => first.locator('canvas').evaluate(c => window.coloured(c));
	const ends = () => first.locator('canvas').evaluate(c => c.toDataURL());
	await page.mouse.move(b.x + b.width / 2, b.y + b.height / 2);
	if (!/\d/.test(await page.locator('.tip:not([hidden])').first().textContent({ timeout: 2000 }).catch(() => ''))) bad.push('hovering shows nothing');
	const before = await ends();
	await page.mouse.move(b.x + b.width * 0.3, b.y + b.height / 2);
	await page.mouse.down();
	await page.mouse.move(b.x + b.width * 0.6, b.y + b.height / 2, { steps: 5 });
	await page.mouse.up();
	await page.waitForTimeout(100);
	if (await ends() === before) bad.push('dragging does not zoom');
	const all = first.locator('.tools button', { hasText: 'all' });
	if (!await all.isVisible()) bad.push('no way back from a zoom');
	else await all.click();
	await page.waitForTimeout(100);
	if (await all.isVisible()) bad.push('the zoom stays');
	const log = first.locator('.tools button', { hasText: 'log' });
	const linear = await ends(), pressed = await log.getAttribute('aria-pressed');
	await log.click();
	if (await log.getAttribute('aria-pressed') === pressed || await ends() === linear) bad.push('the log axis does nothing');
	await log.click();
	const shown = await ink(), arms = page.locator('.legend').first().locator('li');
	for (let i = 0; i < await arms.count(); i++) await arms.nth(i).click();
	await page.waitForTimeout(100);
	if (await ink() > shown / 10) bad.push('the legend hides nothing: ' + await ink() + ' of ' + shown);
	if (await page.locator('svg.chart g[data-arm]:visible').count()) bad.push('the legend hides nothing in drawings');
	for (let i = 0; i < await arms.count(); i++) await arms.nth(i).press('Enter');
	await page.waitForTimeout(100);
	if (await ink() < shown * 0.9) bad.push('the legend does not bring arms back');
	return bad;
};

let failed = 0;
for (const file of pages) {
	const name = basename(file, '.html'), faulty = name.startsWith('faulty');
	for (const [title, width, scheme, js] of [['light', 1200, 'light', true], ['dark', 1200, 'dark', true], ['phone', 390, 'light', true], ['plain', 1200, 'light', false]]) {
		const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, javaScriptEnabled: js });
		const page = await context.newPage(), bad = [];
		page.on('console', m => bad.push('console: ' + m.text()));
		page.on('pageerror', e => bad.push('error: ' + e.message));
		page.on('request', r => { if (!r.url().startsWith('data:') && r.url() !== 'file://' + resolve(file)) bad.push('request: ' + r.url()); });
		await page.goto('file://' + resolve(file));
		if (js) {
			await page.evaluate(helpers);
			bad.push(...await page.evaluate(look));
			const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).reduce((a, v) => a + +v, 0) > 382);
			if (light !== (scheme === 'light')) bad.push('the colours are not ' + scheme);
			if (title === 'light' && !faulty) bad.push(...await use(page));
		} else if (await page.locator('figure.curve svg.chart:visible').count() !== await page.locator('figure.curve').count()) {
			bad.push('curves are not there without scripts');
		}
		if (shots) await page.screenshot({ path: join(shots, name + '-' + title + '.png'), fullPage: true });
		if (title === 'light') {
			await page.emulateMedia({ media: 'print', colorScheme: 'light' });
			if (!await page.locator('figure.curve svg.chart:visible').count() || await page.locator('.plot:visible').count()) bad.push('paper has no drawings');
			const pdf = await page.pdf({ format: 'A4', ...(shots ? { path: join(shots, name + '.pdf') } : {}) });
			if (pdf.length < 20000) bad.push('the PDF is empty');
		}
		await context.close();
		const wrong = title === 'light' && faulty ? !(bad.some(t => t.includes('on purpose')) && bad.some(t => t.includes('not decoded')) && bad.some(t => t.includes('request'))) : !faulty && bad.length > 0;
		if (wrong) console.error('FAILED ' + name + ', ' + title + ': ' + (bad.join('; ') || 'its faults were not noticed')), failed = 1;
	}
	if (!faulty) console.log(name + ': ' + Math.round(statSync(file).size / 1024) + ' KiB, fine unless said above');
}
await browser.close();
process.exit(failed);
