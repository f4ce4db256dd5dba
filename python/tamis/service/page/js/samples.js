// Sample messages, each with sample queries.

export const SAMPLES = [
  {
    name: "News: results of a company",
    namespaces: "",
    queries: [
      "//company[@symbol = 'QLT'][change > 0]/price",
      "/story[topic/@code = 'markets' and not(company/change < 0)]",
      'for $c in //company where $c/change > 5\nreturn <jump symbol="{ $c/@symbol }">{ $c/price/text() }</jump>',
    ],
    message: `<?xml version="1.0" encoding="UTF-8"?>
<story id="2042" urgency="3">
  <headline>Qualité SA jumps on results – profit of 41 M€</headline>
  <topic code="markets"/>
  <company symbol="QLT">
    <name>Qualité SA</name>
    <price currency="EUR">13.90</price>
    <change>9.0</change>
  </company>
  <company symbol="BOL">
    <name>Boulanger & Fils</name>
    <price currency="EUR">82.15</price>
    <change>1.2</change>
  </company>
</story>`.replace("& ", "&amp; "),
  },
  {
    name: "Weather, with a namespace",
    namespaces: "geo = urn:example:geo",
    queries: [
      "//geo:place[@population > 500000]",
      "//measure[@unit = 'km/h'] >= 120",
      '<map>{ for $s in //story where $s/topic/@code = \'weather\'\nreturn <mark where="{ $s/geo:place }" wind="{ $s//measure }"/> }</map>',
    ],
    message: `<story id="2041" urgency="1" xmlns:geo="urn:example:geo">
  <headline>Storm closes the port of Marseille</headline>
  <topic code="weather"/>
  <topic code="transport"/>
  <geo:place country="FR" population="870321">Marseille</geo:place>
  <body>
    <p>Winds of <measure unit="km/h">131</measure> stopped all ferries on Sunday night.</p>
    <p>The port expects to open <em>late on Monday</em>.</p>
  </body>
</story>`,
  },
  {
    name: "An order",
    namespaces: "",
    queries: [
      "/order[total > 100]//item[@sku = 'T-100']",
      "//item[quantity > 1 or starts-with(@sku, 'S-')]",
      'for $i in /order/item where $i/quantity > 1\nreturn <pick sku="{ $i/@sku }" of="{ $i/quantity }"/>',
    ],
    message: `<order id="A-7" placed="2026-03-01">
  <customer><name>Zoë Ångström</name><city>Malmö</city></customer>
  <item sku="T-100"><quantity>2</quantity><price>49.50</price></item>
  <item sku="S-3"><quantity>1</quantity><price>12.00</price></item>
  <total>111.00</total>
</order>`,
  },
];
