/* The microscope's section of the page: profiles over depth at one step, and site against step as heat maps. Without JavaScript
 * the last step of one statistic is drawn; with it, statistic and step are chosen. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "draw/html.h"
#include "draw/svg.h"
#include "report/curves.h"
#include "report/microscope.h"

static const char *const group_title[NR_TOKEN_GROUPS] = { "[CLS] and other special tokens", "All other tokens" };
static const char first_stat[] = "in_length";

/* ---- what is drawn without JavaScript ----------------------------------------------------------------------------------- */

/* One line for each arm: sites by depth, at its last step. */
static void add_profile(struct nr_str *s, const struct nr_microscope_view *v, const struct nr_arms *arms, const char *stat, int group,
	struct nr_arena *arena)
{
	const size_t places = (size_t)v->sites * sizeof(double);
	struct nr_series *line = nr_arena_alloc(arena, (size_t)v->arms * sizeof *line);
	int count = 0;
	if (!line) s->failed = true;
	for (int i = 0; i < v->arms && !s->failed; i++) {
		const struct nr_microscope_file *f = &v->arm[i].file;
		double *x = nr_arena_alloc(arena, places), *y = nr_arena_alloc(arena, places);
		int column = 0, n = 0;
		if (!x || !y) s->failed = true;
		while (column < f->stats && strcmp(f->stat[column], stat)) column++;
		for (int k = 0; k < v->sites && column < f->stats && !s->failed; k++) {
			const int site = v->arm[i].place[k];
			const double value = site < 0 ? (double)NAN : nr_microscope_value(f, column, group, site, f->steps - 1);
			if (isfinite(value)) x[n] = k + 1, y[n++] = value;
		}
		if (n) line[count++] = (struct nr_series){ .label = arms->arm[v->arm[i].arm].label, .x = x, .y = y, .n = n,
			.arm = v->arm[i].arm, .weight = NR_BOLD };
	}
	const struct nr_chart chart = { .name = group_title[group], .x_label = "site, from the input to the output",
		.y_label = nr_microscope_title(stat), .scale = NR_LOG_IF_WIDE, .series = line, .count = count };
	nr_html_figure_open(s, "chart", group_title[group], "at the last step");
	nr_svg_chart(s, &chart);
	nr_html_figure_close(s);
}

/* ---- what JavaScript makes of it ---------------------------------------------------------------------------------------- */

/* The vertical axis is that of all steps, so that a line moves and not its frame. Dashes and markers are those of the legend. */
static const char script[] =
	"(()=>{\n"
	"const root=document.getElementById('microscope'),D=JSON.parse(root.querySelector('script').textContent),n=D.sites.length;\n"
	"const [pick,slide]=root.querySelectorAll('select,input'),said=root.querySelector('output'),NS='http://www.w3.org/2000/svg';\n"
	"const figures=[...root.querySelectorAll('figure')],maps=root.querySelector('.maps'),L=52,R=452,T=30,B=250;\n"
	"const steps=[...new Set(D.arms.flatMap(a=>a.steps))].sort((a,b)=>a-b);\n"
	"const el=(name,set,text)=>{const e=document.createElementNS(NS,name);for(const k in set)e.setAttribute(k,set[k]);\n"
	" if(text!==undefined)e.textContent=text;return e;};\n"
	"const digits=v=>v===0?'0':Math.abs(v)>=1e5||Math.abs(v)<1e-3?v.toExponential(1):String(+v.toPrecision(3));\n"
	"const at=(a,step)=>a.steps.reduce((k,s,i)=>s<=step?i:k,-1);\n"
	"const look=a=>root.querySelector('.legend li[data-arm=\"'+a.arm+'\"]');\n"
	"const off=a=>look(a).classList.contains('off')?'display:none':'';\n"
	"/* sites that begin a block have its number, others their name */\n"
	"const labels=list=>list.map((s,i)=>{const m=/\\.(\\d+)\\./.exec(s),p=i&&/\\.(\\d+)\\./.exec(list[i-1]);\n"
	" return m?(p&&p[1]===m[1]?'':m[1]):s;});\n"
	"let stat=0,range;\n"
	"const fit=groups=>{let lo=Infinity,hi=-Infinity;\n"
	" for(const a of D.arms)for(const g of groups)for(const r of a.v[stat][g]||[])for(const v of r)\n"
	"  if(v!==null){if(v<lo)lo=v;if(v>hi)hi=v;}\n"
	" const log=lo>0&&hi/lo>20;if(!log&&hi-lo<1e-9*Math.abs(hi)+1e-30){const d=Math.abs(hi)/2||1;lo-=d;hi+=d;}\n"
	" const f=v=>log?Math.log(v):v;return{lo,hi,log,part:v=>(f(v)-f(lo))/(f(hi)-f(lo))};};\n"
	"const ticks=()=>{const{lo,hi,log}=range,t=[];\n"
	" if(log){const many=Math.log10(hi/lo)>3;\n"
	"  for(let e=Math.floor(Math.log10(lo));e<=Math.log10(hi);e++)for(const k of many?[1]:[1,2,5])t.push(k*10**e);}\n"
	" else{const raw=(hi-lo)/5,p=10**Math.floor(Math.log10(raw)),d=[1,2,5,10].map(k=>k*p).find(v=>v>=raw);\n"
	"  for(let k=Math.ceil(lo/d);k*d<=hi+1e-9*d;k++)t.push(k*d);}\n"
	" return t.filter(v=>v>=lo*(1-1e-9)||!log).filter(v=>v<=hi*(1+1e-9)||!log);};\n"
	"const X=i=>L+(i+.5)*(R-L)/n,Y=v=>B-range.part(v)*(B-T);\n"
	"const frame=(svg,y)=>{let free=-1e9;labels(D.sites).forEach((t,i)=>{const w=t.length*7.5/2;\n"
	"  if(!t||X(i)-w<free||X(i)+w>478)return;free=X(i)+w+6;\n"
	"  svg.append(el('text',{class:'tick','text-anchor':'middle',x:X(i),y:y+17},t));});\n"
	" svg.append(el('path',{class:'axis',d:'M'+L+','+y+'H'+R}));};\n"
	"const profile=(figure,g,step)=>{\n"
	" const svg=el('svg',{class:'chart',viewBox:'0 0 480 290',role:'img','aria-label':D.stats[stat][1]});\n"
	" for(const v of ticks()){svg.append(el('path',{class:'grid',d:'M'+L+','+Y(v)+'H'+R}),\n"
	"  el('text',{class:'tick','text-anchor':'end',x:L-7,y:Y(v)+4},digits(v)));}\n"
	" svg.append(el('text',{class:'unit',x:2,y:13},D.stats[stat][1]),\n"
	"  el('text',{class:'unit','text-anchor':'end',x:R,y:286},'site, by depth; numbers are blocks'));\n"
	" frame(svg,B);let any=false;\n"
	" for(const a of D.arms){const k=at(a,step),row=k<0||!a.v[stat][g]?[]:a.v[stat][g][k];let d='',up=true;\n"
	"  const box=el('g',{class:'s'+a.arm%8,'data-arm':a.arm,style:off(a)}),mark=look(a).querySelector('.m').getAttribute('d');\n"
	"  const dash=look(a).querySelector('.l').getAttribute('stroke-dasharray')||'none';\n"
	"  row.forEach((v,i)=>{if(v===null)return;d+=(up?'M':'L')+X(i).toFixed(1)+','+Y(v).toFixed(1);up=false;any=true;});\n"
	"  box.append(el('path',{class:'l bold','stroke-dasharray':dash,d}));\n"
	"  row.forEach((v,i)=>v===null||box.append(el('path',{class:'m',transform:'translate('+X(i)+','+Y(v)+')',d:mark})));\n"
	"  svg.append(box);}\n"
	" if(!any)svg.append(el('text',{'text-anchor':'middle',x:(L+R)/2,y:(T+B)/2+10},'not measured for these tokens'));\n"
	" figure.querySelector('svg').replaceWith(svg);figure.querySelector('figcaption span').textContent='step '+step;\n"
	" const tip=figure.querySelector('.tip');svg.onpointerleave=()=>{tip.hidden=true;};\n"
	" svg.onpointermove=e=>{const b=svg.getBoundingClientRect(),i=Math.floor(((e.clientX-b.left)*480/b.width-L)/(R-L)*n);\n"
	"  if(i<0||i>=n){tip.hidden=true;return;}tip.textContent=D.sites[i];\n"
	"  for(const a of D.arms){const k=at(a,step),v=k<0||!a.v[stat][g]||off(a)?null:a.v[stat][g][k][i];if(v===null)continue;\n"
	"   const r=document.createElement('div'),c=document.createElement('b');c.className='s'+a.arm%8;c.textContent=a.letter;\n"
	"   r.append(c,' '+digits(v));tip.append(r);}\n"
	"  tip.hidden=false;const f=figure.getBoundingClientRect(),x=e.clientX-f.left;\n"
	"  tip.style.left=Math.max(0,x+12+tip.offsetWidth>f.width?x-12-tip.offsetWidth:x+12)+'px';tip.style.top='3.5rem';};};\n"
	"/* twelve shades of the arm's colour, one path for each */\n"
	"const map=(a,g,rows,own,step)=>{const all=D.sites.map((s,i)=>i).filter(i=>rows.some(r=>r[i]!==null)),m=all.length;\n"
	" const H=Math.max(90,m*9),w=(R-L)/a.steps.length,h=H/m,shade=Array(12).fill('');\n"
	" rows.forEach((r,k)=>all.forEach((site,i)=>{const v=r[site];if(v===null)return;\n"
	"  shade[Math.min(11,Math.floor(own.part(v)*12))]+='M'+(L+k*w).toFixed(1)+','+(T+i*h).toFixed(1)+'h'+w.toFixed(2)+'v'+\n"
	"   h.toFixed(2)+'h'+(-w).toFixed(2)+'z';}));\n"
	" const svg=el('svg',{class:'chart s'+a.arm%8,viewBox:'0 0 480 '+(T+H+24),role:'img',"
	"'aria-label':D.stats[stat][1]+' over time'});\n"
	" shade.forEach((d,q)=>svg.append(el('path',{d,'shape-rendering':'crispEdges',style:'fill:var(--c);stroke:none',"
	"'fill-opacity':(.06+.94*q/11).toFixed(2)})));\n"
	" let free=-1;labels(all.map(i=>D.sites[i])).forEach((t,i)=>{const y=T+(i+.5)*h+4;if(!t||y<free)return;free=y+14;\n"
	"  svg.append(el('text',{class:'tick','text-anchor':'end',x:L-5,y},t.length>6?t.slice(0,5)+'…':t));});\n"
	" const k=at(a,step),last=a.steps.length-1;\n"
	" svg.append(el('rect',{class:'grid',x:L,y:T,width:R-L,height:H}),el('text',{class:'tick',x:L,y:T+H+17},'step '+a.steps[0]));\n"
	" if(last>0)svg.append(el('text',{class:'tick','text-anchor':'end',x:R,y:T+H+17},a.steps[last]));\n"
	" if(k>=0)svg.append(el('path',{class:'cross',d:'M'+(L+(k+.5)*w)+','+T+'v'+H}));\n"
	" svg.append(el('text',{class:'unit',x:2,y:13},a.letter+': '+(g?'all other tokens':'special tokens')));\n"
	" const tip=document.createElement('div'),figure=document.createElement('figure');tip.className='tip';tip.hidden=true;\n"
	" svg.onpointerleave=()=>{tip.hidden=true;};\n"
	" svg.onpointermove=e=>{const b=svg.getBoundingClientRect(),z=480/b.width,q=Math.floor(((e.clientX-b.left)*z-L)/w),\n"
	"  i=all[Math.floor(((e.clientY-b.top)*z-T)/h)],v=rows[q]&&rows[q][i];tip.hidden=v===null||v===undefined;if(tip.hidden)return;\n"
	"  tip.textContent=D.sites[i]+', step '+a.steps[q]+': '+digits(v);const f=figure.getBoundingClientRect(),x=e.clientX-f.left;\n"
	"  tip.style.left=Math.max(0,Math.min(x+12,f.width-tip.offsetWidth))+'px';tip.style.top=(e.clientY-f.top+16)+'px';};\n"
	" figure.dataset.arm=a.arm;figure.style.cssText=off(a);figure.append(svg,tip);return figure;};\n"
	"const draw=()=>{stat=+pick.value;range=fit([0,1]);const own=[fit([0]),fit([1])],step=steps[+slide.value];"
	"said.textContent='step '+step;\n"
	" figures.forEach((f,g)=>profile(f,g,step));maps.textContent='';\n"
	" for(const a of D.arms)a.v[stat].forEach((rows,g)=>{if(rows)maps.append(map(a,g,rows,own[g],step));});\n"
	" root.querySelector('.shades').textContent=own.map((r,g)=>r.lo>r.hi?'':(g?'Other':'Special')+' tokens: the palest shade is '+\n"
	"  digits(r.lo)+', the fullest '+digits(r.hi)+(r.log?', by their logarithm. ':'. ')).join('');};\n"
	"D.stats.forEach((s,i)=>{const o=document.createElement('option');o.value=i;o.textContent=s[1];pick.append(o);});\n"
	"slide.max=steps.length-1;slide.value=steps.length-1;\n"
	"for(const f of figures){const t=document.createElement('div');t.className='tip';t.hidden=true;f.append(t);}\n"
	"pick.oninput=slide.oninput=draw;for(const e of root.querySelectorAll('[hidden]:not(.tip)'))e.hidden=false;draw();\n"
	"})();\n";

static void add_controls(struct nr_str *s)
{
	nr_str_add(s, "<p class=\"controls\" hidden=\"hidden\"><label>What: <select style=\"max-width:100%\"></select></label><br/>"
		      "<label>When: <input type=\"range\" min=\"0\" value=\"0\" step=\"1\" "
		      "style=\"width:min(60%,24rem);vertical-align:middle\"/>"
		      "</label> <output></output></p>\n");
}

static void add_section(struct nr_str *s, const struct nr_microscope_view *v, const struct nr_arms *a, struct nr_arena *arena)
{
	nr_str_add(s, "<section id=\"microscope\"><h2>The norms over time</h2>\n"
		      "<p>What every norm sees and does, by depth, for the special tokens and for all others: of the first "
		      "run of each arm "
		      "that was recorded with <code>--microscope</code>. Where the two kinds of tokens lie far apart, one norm for both "
		      "has to serve two distributions.</p>\n");
	nr_legend(s, a);
	add_controls(s);
	nr_str_add(s, "<div class=\"charts\">\n");
	for (int g = 0; g < NR_TOKEN_GROUPS; g++) add_profile(s, v, a, first_stat, g, arena);
	nr_str_add(s, "</div>\n<p class=\"notes\" hidden=\"hidden\">Below, each row is a site, the first at the top, and "
		      "time goes from left "
		      "to right; the dashed line is the step chosen. <span class=\"shades\"></span></p>\n<div "
		      "class=\"charts maps\"></div>\n"
		      "<script type=\"application/json\">");
	nr_microscope_json(s, v);
	nr_str_printf(s, "</script>\n<script>\n//<![CDATA[\n%s//]]>\n</script>\n", script);
}

/* The first run of the arm that has records; a file that cannot be read is said. */
static bool read_arm(struct nr_microscope_arm *to, const struct nr_arms *a, int arm, struct nr_str *notes, struct nr_arena *arena)
{
	char text[1024];
	for (int i = 0; i < a->arm[arm].runs; i++) {
		struct nr_error why = { 0 };
		const char *path = nr_arena_printf(arena, "%s/microscope.csv", a->run[a->arm[arm].run[i]].dir);
		FILE *f = path ? fopen(path, "rbe") : NULL;
		if (!f && path && errno == ENOENT) continue;
		*to = (struct nr_microscope_arm){ .arm = arm, .letter = a->arm[arm].letter };
		if (!f) nr_fail(&why, NR_EIO, "cannot read", path ? path : "microscope.csv", "%s", strerror(errno));
		else nr_microscope_read(&to->file, f, path, arena, &why);
		if (f) fclose(f);
		if (why.code) nr_str_printf(notes, "%s\n", nr_error_text(&why, text, sizeof text));
		if (to->file.steps) return true;
		nr_microscope_release(&to->file);
	}
	return false;
}

void nr_microscope_section(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	struct nr_str notes = { 0 };
	struct nr_microscope_view v = { .arm = nr_arena_alloc(arena, ((size_t)a->count + 1) * sizeof *v.arm) };
	if (!v.arm) s->failed = true;
	for (int i = 0; i < a->count && v.arm; i++) v.arms += read_arm(&v.arm[v.arms], a, i, &notes, arena);
	if (nr_microscope_align(&v, arena) || notes.failed) s->failed = true;
	else if (v.arms) add_section(s, &v, a, arena);
	else if (notes.len) nr_str_add(s, "<section id=\"microscope\"><h2>The norms over time</h2>\n");
	if (notes.len) nr_html_element(s, "p", "notes", nr_str_text(&notes));
	if (v.arms || notes.len) nr_str_add(s, "</section>\n");
	for (int i = 0; i < v.arms; i++) nr_microscope_release(&v.arm[i].file);
	nr_str_release(&notes);
}
