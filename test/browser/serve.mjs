// The live pages of norma serve in Chromium: no error on the console, charts that grow while lines are appended, nothing wider than
// the window, light and dark, and the report under its policy.
// Usage: node serve.mjs URL RUN-FOLDER [FOLDER for screenshots]; RUN-FOLDER is a run "live" of that server, beside a study "study".
// playwright-core is looked for in NORMA_NODE_MODULES (a node_modules folder) and then as usual.
import { createRequire } from 'node:module';
import { appendFileSync, mkdirSync } from 'node:fs';
import { execSync } from 'node:child_process';
import path from 'node:path';

const [url, folder, shots] = process.argv.slice(2);
const require = createRequire(process.env.NORMA_NODE_MODULES ? path.resolve(process.env.NORMA_NODE_MODULES, 'x.js') : import.meta.url);
const { chromium } = require('playwright-core');
const browserPath = process.env.NORMA_BROWSER || execSync('command -v chromium || command -v google-chrome', { encoding: 'utf8' }).trim();
if (shots) mkdirSync(shots, { recursive: true });

let failures = 0;
const check = (good, what) => { if (!good) { failures++; console.error('FAILED: ' + what); } };
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });

async function visit(where, look, then) {
	const page = await browser.newPage({ viewport: { width: look.width, height: 900 }, colorScheme: look.scheme });
	page.setDefaultTimeout(300000);       // for what hangs: a machine may be busy
	const name = `${where} (${look.width} px, ${look.scheme})`, said = [];
	page.on('console', m => { if (['error', 'warning'].includes(m.type())) said.push(m.text()); });
	page.on('pageerror', e => said.push(String(e)));
	const answer = await page.goto(new URL(where, url).href);
	check(answer.ok(), `${name}: status ${answer.status()}`);
	await then(page, name).catch(e => check(false, `${name}: ${e.message.split("\n")[0]} ${said.join(" | ")}`));
	const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
	check(wide <= 0, `${name}: scrolls sideways by ${wide} px`);
	if (shots) await page.screenshot({ path: path.join(shots, where.replace(/\W+/g, '_') + `-${look.width}-${look.scheme}.png`), fullPage: true });
	check(!said.length, `${name}: the console has ${said.join(' | ')}`);
	await page.close();
}

const live = page => page.waitForFunction(() => /^Live/.test(document.getElementById('link').textContent));
const looks = [{ width: 1200, scheme: 'light' }, { width: 1200, scheme: 'dark' }, { width: 390, scheme: 'light' }];
let step = 5000;

for (const look of looks) {
	await visit('/', look, async (page, name) => {
		await live(page);
		check(await page.locator('[data-status]').count() >= 2, `${name}: runs are missing`);
		check(await page.evaluate(() => [...document.querySelectorAll('[data-status], [data-headline]')].every(e => e.offsetParent)),
			`${name}: a row of the list is hidden`);
	});
	await visit('/run/live', look, async (page, name) => {
		await live(page);
		await page.waitForSelector('figure.live canvas');
		// of all charts: the lines below are no evaluations, whose charts come first
		const points = () => page.evaluate(() => [...document.querySelectorAll('figure.live')].reduce((n, f) => n + +(f.dataset.points || 0), 0));
		const before = await points();
		for (let i = 0; i < 5; i++) appendFileSync(path.join(folder, 'metrics.csv'), `${step += 10},5,90,0.${4 + i},0.4,1e-3,900,,,,\n`);
		await page.waitForFunction(n => [...document.querySelectorAll('figure.live')].reduce((m, f) => m + +(f.dataset.points || 0), 0) >= n + 5,
			before)
			.catch(async () => check(false, `${name}: the chart had ${before} points and has ${await points()}`));
		check(await page.evaluate(() => [...document.querySelectorAll('figure.live canvas')].every(c => c.width > 100 && c.height > 100)),
			`${name}: a chart has no size`);
		await page.waitForFunction(n => document.querySelector('.status .text').textContent.includes('step ' + n), step)
			.catch(async () => check(false, `${name}: the state says '${await page.textContent('.status .text')}', not step ${step}`));
	});
	await visit('/study/study', look, async (page, name) => {
		await live(page);
		await page.waitForSelector('figure.live canvas');
		check(await page.locator('#grid .stage').count() > 0, `${name}: no stages`);
		check(await page.locator('#legend li').count() > 1, `${name}: no legend`);
		const entry = page.locator('#legend li').first();
		await entry.click();
		check(await page.locator('#legend li.off').count() === 1, `${name}: the legend hides nothing`);
		await page.locator('#legend li').first().click();
	});
	await visit('/report/live', look, async (page, name) => {
		await page.waitForSelector('svg, canvas');
		check(await page.evaluate(() => getComputedStyle(document.body).maxWidth) !== 'none', `${name}: the style was refused`);
	});
}
await browser.close();
if (!failures) console.log('four pages, three looks: fine');
process.exit(failures ? 1 : 0);
